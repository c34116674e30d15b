ALTER TABLE example6.central_west CONFIGURE ZONE USING constraints='[+datacenter=central, +datacenter=west]';
ALTER TABLE example6.central_west_json CONFIGURE ZONE USING constraints='{+datacenter=central: 2, +datacenter=west: 1}';
