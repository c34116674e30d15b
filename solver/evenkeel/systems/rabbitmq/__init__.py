"""RabbitMQ: queues and their members."""
