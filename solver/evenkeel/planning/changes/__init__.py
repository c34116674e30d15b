"""Changes: the intermediate states of each partition, and the rules that hold in them."""
