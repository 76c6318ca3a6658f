-- The demo's load beside pgbench's own transactions: an article is sold.
\set article random(1, 200000)
UPDATE stock SET amount = amount - 1 WHERE article = :article;
