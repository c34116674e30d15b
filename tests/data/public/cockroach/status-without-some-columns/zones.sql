ALTER PARTITION us_west OF INDEX movr.vehicles@primary CONFIGURE ZONE USING constraints='[+region=us-west1]';
ALTER PARTITION us_east OF INDEX movr.vehicles@primary CONFIGURE ZONE USING constraints='[+region=us-east1]';
ALTER PARTITION europe_west OF INDEX movr.vehicles@primary CONFIGURE ZONE USING constraints='[+region=europe-west1]';
