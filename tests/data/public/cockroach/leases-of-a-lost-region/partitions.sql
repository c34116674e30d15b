ALTER TABLE rides PARTITION BY LIST (city) (
  PARTITION us_west2 VALUES IN ('los angeles', 'seattle', 'san francisco'),
  PARTITION us_east4 VALUES IN ('new york','boston', 'washington dc'),
  PARTITION eu_west2 VALUES IN ('paris','rome','amsterdam')
);

ALTER PARTITION us_east4 OF INDEX rides@*
CONFIGURE ZONE USING
  num_replicas = 3,
  constraints = '{"+region=us-east4":1}',
  lease_preferences = '[[+region=us-east4]]';  

ALTER PARTITION eu_west2 OF INDEX rides@*
CONFIGURE ZONE USING
  num_replicas = 3,
  constraints = '{"+region=eu-west2":1}',
  lease_preferences = '[[+region=eu-west2]]';  

ALTER PARTITION us_west2 OF INDEX rides@*
CONFIGURE ZONE USING
  num_replicas = 3,
  constraints = '{"+region=eu-west2":1}',
  lease_preferences = '[[+region=eu-west2]]';
