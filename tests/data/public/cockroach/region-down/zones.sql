ALTER DATABASE test CONFIGURE ZONE USING num_replicas = 3, num_voters = 3, constraints = '[+region=us-east-1]', voter_constraints = '[+region=us-east-1]', lease_preferences = '[[+region=us-east-1]]';
ALTER RANGE default CONFIGURE ZONE USING num_replicas = 3;
