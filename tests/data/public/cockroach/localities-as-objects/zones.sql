ALTER DATABASE perftest CONFIGURE ZONE USING num_replicas = 9, constraints = '{+region=eu-west-1: 3, +region=us-east-1: 3, +region=us-west-2: 3}', lease_preferences = '[[+region=us-east-1]]';
