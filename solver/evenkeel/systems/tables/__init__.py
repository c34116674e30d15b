"""Tables: clusters as CSV files and frames."""
