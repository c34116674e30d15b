"""What runs beside a pipeline, and on which executor."""
