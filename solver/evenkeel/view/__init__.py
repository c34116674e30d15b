"""Views: render results for people, on terminals, in notebooks, and as pages and plots."""
