-- One transaction of the application: it inserts, updates and deletes, in tables with and without a key.
\set order random(1, 200000)
\set customer random(1, 5000)
\set total random(100, 99999)
BEGIN;
INSERT INTO sales.orders (customer_id, total, tags) VALUES (:customer, :total / 100.0, ARRAY['load']);
UPDATE sales.orders SET total = total + 1, state = 'paid', note = 'changed under load' WHERE id = :order;
UPDATE sales.customers SET preferences = preferences || '{"seen": true}' WHERE id = :customer;
INSERT INTO sales.visits (customer_id, page) VALUES (:customer, '/order/' || :order);
\if :order % 4 = 0
DELETE FROM sales.orders WHERE id = (SELECT min(id) FROM sales.orders WHERE id > 200000);
\endif
END;
