-- what SHOW ZONE CONFIGURATIONS prints; a comment with 'quotes; and more
ALTER RANGE default CONFIGURE ZONE USING
    range_min_bytes = 134217728,
    range_max_bytes = 536870912,
    gc.ttlseconds = 14400,
    num_replicas = 3,
    constraints = '[]',
    lease_preferences = '[]';
ALTER RANGE meta CONFIGURE ZONE USING num_replicas = 5;
ALTER TABLE public.users CONFIGURE ZONE USING
    constraints = '{"+region=us-east1": 2}',
    lease_preferences = '[[+region=us-east1, +az=b], [+region=us-east1]]';
ALTER DATABASE movr CONFIGURE ZONE USING num_voters = 3;
ALTER TABLE "rides" CONFIGURE ZONE USING num_replicas = 3, num_voters = 2, voter_constraints = '[-az=c]';
