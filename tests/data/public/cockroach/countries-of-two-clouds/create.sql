-- 2. Partition the Table by Country
ALTER TABLE person PARTITION BY LIST (country) (
    PARTITION za VALUES IN ('ZA'),
    PARTITION us VALUES IN ('US'),
    PARTITION other VALUES IN (DEFAULT)
);

-- 3. Pin Partitions to Regions via Zone Configs
-- ZA data → af-south-1 (your AWS nodes)
ALTER PARTITION za OF TABLE person
    CONFIGURE ZONE USING
        num_replicas = 3,
        constraints  = '[+region=af-south-1]',
        lease_preferences = '[[+region=af-south-1]]';

-- US data → us-east1 (your Google nodes)
ALTER PARTITION us OF TABLE person
    CONFIGURE ZONE USING
        num_replicas = 3,
        constraints  = '[+region=us-east1]',
        lease_preferences = '[[+region=us-east1]]';

-- Everything else — no placement constraint, spread freely
ALTER PARTITION other OF TABLE person
    CONFIGURE ZONE USING
        num_replicas = 3;

CREATE INDEX idx_person_email ON person (country, email);  -- country prefix required

ALTER INDEX person@idx_person_email PARTITION BY LIST (country) (
    PARTITION za VALUES IN ('ZA'),
    PARTITION us VALUES IN ('US'),
    PARTITION other VALUES IN (DEFAULT)
);

ALTER PARTITION za OF INDEX person@idx_person_email
    CONFIGURE ZONE USING constraints = '[+region=af-south-1]',
                         lease_preferences = '[[+region=af-south-1]]';

ALTER PARTITION us OF INDEX person@idx_person_email
    CONFIGURE ZONE USING constraints = '[+region=us-east1]',
                         lease_preferences = '[[+region=us-east1]]';
