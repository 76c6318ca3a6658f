\echo Use "CREATE EXTENSION thalweg_datalayer" to load this file. \quit

-- It does what its caller may do, nothing more: everybody may call it.
GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;

CREATE FUNCTION @extschema@.apply_lcrs(tables bytea, frames bytea) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'thalweg_apply_lcrs';

COMMENT ON FUNCTION @extschema@.apply_lcrs(bytea, bytea) IS
'Writes row frames in their order; returns how many. Formats: docs/formats/data-layer-call.md.';
