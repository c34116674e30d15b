ALTER PARTITION "us_east" OF INDEX movr.public.vehicles@vehicles_pkey CONFIGURE ZONE USING
	constraints = '[+region=us-east1]';
ALTER PARTITION "us_west" OF INDEX movr.public.vehicles@vehicles_pkey CONFIGURE ZONE USING
	constraints = '[+region=us-west1]';
ALTER PARTITION "europe_west" OF INDEX movr.public.vehicles@vehicles_pkey CONFIGURE ZONE USING
	constraints = '[+region=europe-west1]';
ALTER TABLE vehicles PARTITION BY LIST (city) (
	PARTITION us_west VALUES IN (('seattle'), ('san francisco'), ('los angeles')),
	PARTITION us_east VALUES IN (('new york'), ('boston'), ('washington dc')),
	PARTITION europe_west VALUES IN (('amsterdam'), ('paris'), ('rome'))
);
