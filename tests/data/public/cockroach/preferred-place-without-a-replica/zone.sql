ALTER DATABASE kv CONFIGURE ZONE USING num_replicas=3, constraints = '{+continent=us: 2}', lease_preferences = '[[+region=us-west]]';
