"""The README and the site: what they show runs, and what there is they tell."""
