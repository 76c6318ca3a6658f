-- One transaction of the application: it finds its row by an index that the destination does not have.
\set id random(1, 300000)
UPDATE stock SET amount = amount + 1 WHERE id = :id;
