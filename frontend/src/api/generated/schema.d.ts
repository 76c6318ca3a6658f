// Generated from backend/openapi.json by `npm run generate`. Do not edit.

export interface paths {
    "/api/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Session
         * @description The logged-in user, and the CSRF token to send with changes.
         */
        get: operations["session_get"];
        put?: never;
        /**
         * Create Session
         * @description Log in. Sets the session's cookie; failed attempts slow down the next ones.
         *
         *     A user with a second factor gets 401 second_factor_required and a cookie that is valid for five minutes: send it
         *     back with a code to /api/v1/session:verify-code.
         */
        post: operations["session_create"];
        /**
         * Delete Session
         * @description Log out.
         */
        delete: operations["session_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/session:verify-code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Verify Code
         * @description The second step of a login: a code from the authenticator, or a recovery code. Wrong codes slow down further
         *     attempts.
         */
        post: operations["session_verify_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Users */
        get: operations["users_list"];
        put?: never;
        /** Create User */
        post: operations["users_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get User */
        get: operations["users_get"];
        put?: never;
        post?: never;
        /**
         * Delete User
         * @description Delete a user with their sessions and tokens. You cannot delete yourself.
         */
        delete: operations["users_delete"];
        options?: never;
        head?: never;
        /** Update User */
        patch: operations["users_update"];
        trace?: never;
    };
    "/api/v1/users/{user_id}:change-password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change Password
         * @description Change a password. This ends the user's other sessions. To change your own, send the current one; only an admin
         *     can change somebody else's.
         */
        post: operations["users_change_password"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}/second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Second Factor
         * @description Your own second factor; an admin can read everybody's.
         */
        get: operations["users_get_second_factor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}:prepare-second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Prepare Second Factor
         * @description Create a secret for your authenticator. An existing one remains valid until a code confirms the new one.
         */
        post: operations["users_prepare_second_factor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}:confirm-second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm Second Factor
         * @description Turn on the prepared second factor. This ends your other sessions. Only this answer shows the recovery codes.
         */
        post: operations["users_confirm_second_factor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}:renew-recovery-codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew Recovery Codes
         * @description Create ten new recovery codes. The previous ones become invalid.
         */
        post: operations["users_renew_recovery_codes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}:remove-second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove Second Factor
         * @description Turn off your own second factor. This ends your other sessions. Refused if an admin requires one.
         */
        post: operations["users_remove_second_factor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}:reset-second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset Second Factor
         * @description Turn off the second factor of a user who has lost the device. This ends all sessions of that user.
         */
        post: operations["users_reset_second_factor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/access-policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Access Policy
         * @description The requirements for users who log in.
         */
        get: operations["access_policy_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update Access Policy
         * @description Require a second factor. From then on, a user without one can only set one up; API tokens need none.
         */
        patch: operations["access_policy_update"];
        trace?: never;
    };
    "/api/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Tokens
         * @description Your API tokens; an admin sees everybody's.
         */
        get: operations["tokens_list"];
        put?: never;
        /**
         * Create Token
         * @description Create an API token. Only this answer shows its secret. A token that is created with another token cannot outlive
         *     it, and is revoked with it.
         */
        post: operations["tokens_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens/{token_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke Token */
        delete: operations["tokens_revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Databases */
        get: operations["databases_list"];
        put?: never;
        /**
         * Create Database
         * @description Register a database. No connection is made: test it first with databases_test_unsaved.
         */
        post: operations["databases_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases:test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test Unsaved
         * @description Test a connection without saving its settings. A failure is also answered with 200; `code` and `cure` say why.
         */
        post: operations["databases_test_unsaved"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases/{database_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Database */
        get: operations["databases_get"];
        put?: never;
        post?: never;
        /**
         * Delete Database
         * @description Remove a database that no stream uses. The database itself does not change.
         */
        delete: operations["databases_delete"];
        options?: never;
        head?: never;
        /**
         * Update Database
         * @description Change a database. Streams that use it reconnect with the new settings.
         */
        patch: operations["databases_update"];
        trace?: never;
    };
    "/api/v1/databases/{database_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test Database
         * @description Test the connection to a registered database. A failure is also answered with 200; `code` and `cure` say why.
         */
        post: operations["databases_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases/{database_id}/tables": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Tables
         * @description The database's tables, read from its catalogue now.
         */
        get: operations["databases_tables"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases/{database_id}/columns": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Columns
         * @description The columns of a table that rules can read, from the database's catalogue now.
         */
        get: operations["databases_columns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases/{database_id}/preflight": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Preflight
         * @description Check whether the database is ready to be a source or a destination, with a cure for each failed check.
         */
        get: operations["databases_preflight"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/engines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Engines */
        get: operations["engines_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/engines/{engine_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Engine */
        get: operations["engines_get"];
        put?: never;
        post?: never;
        /**
         * Delete Engine
         * @description Remove an engine that runs no stream.
         */
        delete: operations["engines_delete"];
        options?: never;
        head?: never;
        /**
         * Update Engine
         * @description Change the address at which other engines reach it. Engines that send to it learn of the change immediately.
         */
        patch: operations["engines_update"];
        trace?: never;
    };
    "/api/v1/engines/{engine_id}:drop-stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drop Stream
         * @description Have an engine drop a stream that the store does not know. The stream's objects in both databases are removed,
         *     except for the rows that it copied.
         */
        post: operations["engines_drop_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/engines/enrolments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create Enrolment
         * @description Create a token with which one engine can enrol.
         */
        post: operations["enrolments_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/engines/enrol": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enrol Engine
         * @description Enrol an engine with a one-time token. No login is needed.
         */
        post: operations["engines_enrol"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams:preview-tables": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview Tables
         * @description The tables of the source that the rules match, with sizes and keys.
         */
        post: operations["streams_preview_tables"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams:check-rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check Rules
         * @description Check row rules before a stream has them: the capturing engine compiles each condition for its table, as it
         *     is at the source now, and looks whether the changes will bring what the condition reads.
         */
        post: operations["streams_check_rules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams:test-rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test Rules
         * @description Try rules of a table before a stream has them: the engine judges changes that you give, the next changes of a
         *     running stream, and rows that the source has, as a capture would, and says what each rule makes of each. Values of
         *     rows are shown as the source has them, those that a transformation masks, too; of a stream's changes, columns that
         *     it masks or drops are not shown. The audit log records that rows were read.
         */
        post: operations["streams_test_rules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/preflights": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run Preflight
         * @description Check the databases for a stream that you are about to create. Nothing remains: what the check tries at the
         *     destination is rolled back, and holds locks until then.
         */
        post: operations["preflights_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Streams */
        get: operations["streams_list"];
        put?: never;
        /**
         * Create Stream
         * @description Create a stream. If the databases are not ready, the request is refused with each failed check, and nothing is
         *     left behind.
         *
         *     The operation finishes when the initial copy is done.
         */
        post: operations["streams_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Stream */
        get: operations["streams_get"];
        put?: never;
        post?: never;
        /**
         * Delete Stream
         * @description Stop the stream and drop what it created in both databases. The destination's tables and rows stay.
         */
        delete: operations["streams_delete"];
        options?: never;
        head?: never;
        /**
         * Patch Stream
         * @description Change the name, parameters or table rules; parameters marked live and rules take effect while the stream runs.
         *
         *     New rules are checked like those of a new stream, and refused with each failed check.
         */
        patch: operations["streams_update"];
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add Destination
         * @description Add a destination to a stream. It is copied and catches up while the others continue. If the database is not
         *     ready, the request is refused with each failed check.
         *
         *     The operation finishes when the new destination has caught up.
         */
        post: operations["destinations_add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Drop Destination
         * @description Drop one of several destinations. Its backlog and the stream's progress there are discarded for good; its tables
         *     and rows stay, and the other destinations continue.
         */
        delete: operations["destinations_drop"];
        options?: never;
        head?: never;
        /**
         * Update Destination
         * @description Override the stream's parameters at one destination, or give it row rules of its own. The entity tag is the
         *     stream's.
         *
         *     New rules are checked like those of a stream, and refused with each failed check.
         */
        patch: operations["destinations_update"];
        trace?: never;
    };
    "/api/v1/stream-parameters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Parameters
         * @description The parameters of a stream: types, ranges, defaults, descriptions.
         */
        get: operations["stream_parameters_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Overview
         * @description Each stream in one line, with its health in words.
         */
        get: operations["overview_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview/rates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Rates
         * @description The rate of each stream over its last two minutes, for small charts.
         */
        get: operations["overview_rates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}:start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start Stream */
        post: operations["streams_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}:stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop Stream
         * @description Drain the queue and stop. From then on, the source keeps its WAL until the stream starts again.
         */
        post: operations["streams_stop"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}:retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry Stream
         * @description Clear the error of an aborted stream and start it again.
         */
        post: operations["streams_retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/samples": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Samples
         * @description Live samples of the last seconds, oldest first.
         */
        get: operations["streams_samples"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}:start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start Destination */
        post: operations["destinations_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}:stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop Destination
         * @description Pause one of several destinations. Its backlog grows on the engine's disk until it starts again.
         */
        post: operations["destinations_stop"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}:retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry Destination
         * @description Clear the error of one of several destinations and retry immediately.
         */
        post: operations["destinations_retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Errors
         * @description Transactions in the destination's error queue, in the order in which they were parked, and the whole queue by
         *     cause, read through the engine.
         */
        get: operations["stream_errors_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Error
         * @description The changes of a parked transaction, row by row, beside the destination's current rows. Because this shows rows
         *     of the tables, viewers cannot read it, and the audit log records each access.
         */
        get: operations["stream_errors_get"];
        put?: never;
        post?: never;
        /**
         * Delete Error
         * @description Discard a parked transaction: its changes are never applied. The audit log keeps them
         *     (`audit_changes`). If it cannot keep all of them (more than 10,000 changes or 64 MiB, more than can be read in 50 s,
         *     a change whose values have more than 32 MiB or whose row at the destination cannot be read, or values beyond 1 KiB
         *     from an engine of an earlier version), the request is refused with `not_kept_whole`, unless `partly` is set. An
         *     engine that is busy, or does not answer, refuses it also then (`engine_busy`, `engine_slow`): try again. Without an
         *     answer to the request itself, the entry of the audit log has no `refused` and `finished: false`, unless the
         *     transaction has gone from the queue.
         */
        delete: operations["stream_errors_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}/dependants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Dependants
         * @description The transactions that wait behind a parked one, as a tree: because they touch the same rows or tables, each
         *     follows from the one before it. Computed from the queue as it is now.
         */
        get: operations["stream_errors_dependants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors:execute": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Execute Errors
         * @description Apply all parked transactions again, or those with one cause and those that wait behind them, in the source's
         *     order. One that fails stays parked, with those that wait behind it, and does not hold back others. If this takes
         *     longer than a few seconds, it continues after the answer, and the list of the queue shows its progress.
         */
        post: operations["stream_errors_execute_all"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}/execute": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Execute Error
         * @description Apply a parked transaction again, followed by its dependants in order. If this takes longer than a few seconds,
         *     it continues after the answer, and the list of the queue shows its progress.
         */
        post: operations["stream_errors_execute"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}/dry-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Dry Run Error
         * @description Apply a parked transaction and roll it back: whether it would succeed, or what the destination refuses. Deferred
         *     constraints are checked. Neither the tables nor the queue change; values drawn from sequences by triggers stay
         *     drawn. Refused while the queue is executed, and for a transaction that waits behind another one.
         */
        post: operations["stream_errors_dry_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/errors/{error_id}/changes/{number}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Edit Error
         * @description Leave one change of a parked transaction out, or give it other new values, in the place of what was decided about
         *     it before. Dry runs and executions apply the transaction so. The change stays recorded as it came, beside the edit.
         *     If-Match is the transaction's `etag`. Refused while the queue is executed.
         */
        put: operations["stream_errors_edit"];
        post?: never;
        /**
         * Restore Error
         * @description Take back what was decided about a change of a parked transaction: it is applied as it came. If-Match is the
         *     transaction's `etag`. Refused while the queue is executed.
         */
        delete: operations["stream_errors_restore"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/tables:copy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Copy Table
         * @description Delete a table's rows at the destination and copy the source's again; changes continue from the copy's position.
         *     The stream, or this one of several destinations, waits in the meantime. Transactions in the error queue that changed
         *     only copied tables are discarded; the audit log records how many, and the `reason`. Refused while the error queue is
         *     executed.
         */
        post: operations["stream_tables_copy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/tables:accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept Table
         * @description Accept a table's changed partitions as they are: the destination's rows have been repaired, or are correct.
         */
        post: operations["stream_tables_accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/tables:follow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Follow Table
         * @description Follow a table's rename at the source, in the stream's rules and in the destinations' tables.
         */
        post: operations["stream_tables_follow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/tables:remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove Table
         * @description Remove from the stream a table that was dropped at the source. The destinations' tables stay.
         */
        post: operations["stream_tables_remove"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/conflicts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Conflicts
         * @description Single changes that conflict_handlers or error_policies have settled at the destination, while the rest of their
         *     transactions was applied: the newest first, read through the engine.
         */
        get: operations["stream_conflicts_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/conflicts:count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count Conflicts
         * @description The whole conflict log by table, kind and action.
         */
        get: operations["stream_conflicts_count"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/conflicts:export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Conflicts
         * @description The conflict log with its rows as a file. Because it contains rows of the tables, viewers cannot read it, and the
         *     audit log records each export.
         */
        get: operations["stream_conflicts_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/destinations/{destination_id}/conflicts/{conflict_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Conflict
         * @description One entry of the conflict log with the change's rows beside the destination's. Because this shows rows of the
         *     tables, viewers cannot read it, and the audit log records each access.
         */
        get: operations["stream_conflicts_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get History
         * @description The span of history at each resolution, and its size.
         */
        get: operations["history_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Chart
         * @description Statistics over a range of any length, at the resolution that fits. A statistic that a range does not have is
         *     null throughout.
         */
        get: operations["stream_history_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/history/statistics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Statistics
         * @description Names and units of what can be charted, as of the newest sample.
         */
        get: operations["stream_history_statistics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/history/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Events
         * @description Events of a range, newest first: restarts of the stream and its engines, changes, alerts. The audit log, for
         *     admins, also tells from where a change came, and what was before and after it.
         */
        get: operations["stream_history_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/history/samples": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Samples
         * @description Whole samples of a range, with their components.
         */
        get: operations["stream_history_samples"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Transactions
         * @description Transactions that are open, wait or execute, as of a second ago, read from the stream's engines.
         */
        get: operations["stream_transactions_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/markers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Markers
         * @description Heartbeats and tracked markers with their way through the path, component by component.
         */
        get: operations["stream_markers_list"];
        put?: never;
        /**
         * Create Marker
         * @description Have the source commit a marker as soon as possible. It follows everything that committed there before.
         */
        post: operations["stream_markers_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/{stream_id}/markers/{marker_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Marker
         * @description One tracked marker. Poll it until its state is ARRIVED.
         */
        get: operations["stream_markers_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sources/{database_id}/searches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Searches
         * @description The WAL of the source that engines keep, and the searches in it.
         */
        get: operations["searches_list"];
        put?: never;
        /**
         * Create Search
         * @description Begin a search: who changed a row, when, from what to what, in which transaction. The audit log records it, but
         *     no values. Poll searches_get until its state is DONE or FAILED.
         */
        post: operations["searches_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sources/{database_id}/searches/{search_id}:export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Search
         * @description All changes that a search has found, once it has ended, as a file.
         */
        get: operations["searches_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sources/{database_id}/searches/{search_id}:undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Undo Search
         * @description SQL that undoes changes which a search has found, once it has ended: one transaction, the newest change first. It
         *     is not executed. Comments name the changes that cannot be undone, with the reason.
         */
        get: operations["searches_undo"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sources/{database_id}/searches/{search_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Search
         * @description One search: how far it is, and the changes that it has found. The audit log records it where another user has
         *     begun the search.
         */
        get: operations["searches_get"];
        put?: never;
        post?: never;
        /**
         * Delete Search
         * @description End a search. Its changes are forgotten.
         */
        delete: operations["searches_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sources/{database_id}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find Changes
         * @description Begin a search and wait for it: its first changes, 1000 at most. After the state RUNNING, or a `next_after`, go
         *     on with searches_get.
         */
        get: operations["changes_find"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Operations
         * @description Operations, newest first.
         */
        get: operations["operations_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/operations/{operation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Operation */
        get: operations["operations_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Topology
         * @description Databases and components of all streams as a directed graph.
         */
        get: operations["topology_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/slots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Slots
         * @description The replication slots of every server that has a registered database, also those that are not Thalweg's.
         */
        get: operations["slots_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/databases/{database_id}/slots/{slot_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Drop Slot
         * @description Drop an orphan: a slot with the name of a stream's slot that belongs to no stream. Refused while a client reads
         *     from it.
         *
         *     Another Thalweg installation that captures from the same server creates slots of the same form, and its streams are
         *     not known here.
         */
        delete: operations["slots_drop"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/analysis": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Analysis
         * @description Analyse the last seconds, or what was recorded between two times. Nothing is stored. The databases of a path
         *     that is limited are queried for what only they know (triggers, tables, sessions); all who look share what was read
         *     in the last 5 s, or in four times as long as the reading took. The past is judged without them.
         *
         *     `begin_at` and `end_at` go together and replace `window_seconds`: the answer to "what happened then".
         */
        get: operations["advisor_analysis_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Runs
         * @description Runs, newest first.
         */
        get: operations["advisor_runs_list"];
        put?: never;
        /**
         * Create Run
         * @description Take a snapshot of all paths, or of those through one stream or component, with the databases' own facts.
         */
        post: operations["advisor_runs_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Run
         * @description A complete run: the six tables, findings, facts.
         */
        get: operations["advisor_runs_get"];
        put?: never;
        post?: never;
        /** Delete Run */
        delete: operations["advisor_runs_delete"];
        options?: never;
        head?: never;
        /**
         * Update Run
         * @description Name it, annotate it, or exempt it from the retention.
         */
        patch: operations["advisor_runs_update"];
        trace?: never;
    };
    "/api/v1/advisor/comparison": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Comparison
         * @description Two runs side by side: every statistic before, after, and its change.
         */
        get: operations["advisor_comparison_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/components": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Components
         * @description The table COMPONENT.
         */
        get: operations["advisor_run_components_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/component-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Links
         * @description The table COMPONENT_LINK.
         */
        get: operations["advisor_run_links_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/component-statistics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Component Statistics
         * @description The table COMPONENT_STAT, with the statistics of sub-components and threads.
         */
        get: operations["advisor_run_component_statistics_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/databases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Databases
         * @description The table DATABASE.
         */
        get: operations["advisor_run_databases_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/path-statistics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Path Statistics
         * @description The table PATH_STAT.
         */
        get: operations["advisor_run_path_statistics_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/path-bottlenecks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Path Bottlenecks
         * @description The table PATH_BOTTLENECK: one row for each path.
         */
        get: operations["advisor_run_path_bottlenecks_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Report
         * @description A run as a file: for spreadsheets, for people without access, for the record.
         */
        get: operations["advisor_runs_report"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/runs/{run_id}/findings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Findings
         * @description The findings of all paths, the most important first, with evidence and cures.
         */
        get: operations["advisor_run_findings_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List Schedules */
        get: operations["advisor_schedules_list"];
        put?: never;
        /**
         * Create Schedule
         * @description Take a run at regular intervals, the first one immediately.
         */
        post: operations["advisor_schedules_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/schedules/{schedule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Schedule */
        get: operations["advisor_schedules_get"];
        put?: never;
        post?: never;
        /**
         * Delete Schedule
         * @description Delete a schedule. Its runs stay.
         */
        delete: operations["advisor_schedules_delete"];
        options?: never;
        head?: never;
        /** Update Schedule */
        patch: operations["advisor_schedules_update"];
        trace?: never;
    };
    "/api/v1/advisor/policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Policy
         * @description The thresholds of bottlenecks, and how long runs are kept.
         */
        get: operations["advisor_policy_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Update Policy */
        patch: operations["advisor_policy_update"];
        trace?: never;
    };
    "/api/v1/advisor/cures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Cures
         * @description Cures that were applied, newest first, and whether they helped.
         */
        get: operations["advisor_cures_list"];
        put?: never;
        /**
         * Apply Cure
         * @description Apply a finding's cure: a change of parameters, or an index. Snapshots before and after show whether it helped.
         *
         *     With `by_hand` nothing is changed: what a person has done is judged against the run with the finding.
         */
        post: operations["advisor_cures_apply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/cures/{cure_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Cure */
        get: operations["advisor_cures_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/advisor/cures/{cure_id}:undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo Cure
         * @description Undo a cure: the parameters return to what they were.
         */
        post: operations["advisor_cures_undo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Alerts
         * @description Alerts, newest first: those that are open (pending or firing), or the history. `outdated` says so when nobody
         *     looks any more: an empty list does not mean then that all is well.
         */
        get: operations["alerts_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count Alerts
         * @description The number of alerts now.
         */
        get: operations["alerts_count"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Alert Rules
         * @description All alert rules, with their meaning, defaults, settings and effective values.
         */
        get: operations["alert_rules_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/rules/{rule}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Update Alert Rule
         * @description Set an alert rule for all streams. The settings replace the previous ones as a whole; an empty object restores
         *     the defaults.
         */
        put: operations["alert_rules_update"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/rules/{rule}/streams/{stream_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Update Alert Rule Of Stream
         * @description Set an alert rule for one stream.
         */
        put: operations["alert_rules_update_stream"];
        post?: never;
        /**
         * Delete Alert Rule Of Stream
         * @description Delete a stream's own settings of an alert rule: those for all streams apply again.
         */
        delete: operations["alert_rules_delete_stream"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/silences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Silences
         * @description Silences in effect now.
         */
        get: operations["alert_silences_list"];
        put?: never;
        /**
         * Create Silence
         * @description Suppress notices for a while, by alert rule and stream.
         */
        post: operations["alert_silences_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/silences/{silence_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End Silence
         * @description End a silence now. Alerts that still fire are then notified.
         */
        delete: operations["alert_silences_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/channels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Channels
         * @description The channels of notices, each with its last delivery.
         */
        get: operations["alert_channels_list"];
        put?: never;
        /**
         * Create Channel
         * @description Add a webhook, a mail address or the log. Test it afterwards.
         */
        post: operations["alert_channels_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/channels/{channel_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Channel */
        get: operations["alert_channels_get"];
        put?: never;
        post?: never;
        /**
         * Delete Channel
         * @description Remove a channel with its deliveries.
         */
        delete: operations["alert_channels_delete"];
        options?: never;
        head?: never;
        /** Update Channel */
        patch: operations["alert_channels_update"];
        trace?: never;
    };
    "/api/v1/alerts/channels/{channel_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test Channel
         * @description Send a test now. A failure is also answered with 200; `error` has the reason and the cure.
         */
        post: operations["alert_channels_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Deliveries
         * @description Notices, newest first: what was sent where, and what went wrong.
         */
        get: operations["alert_deliveries_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/deliveries/{delivery_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry Delivery
         * @description Resend a notice now.
         */
        post: operations["alert_deliveries_retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/{alert_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get Alert */
        get: operations["alerts_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/{alert_id}/acknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge
         * @description Say that somebody is working on it. It stays in the list until it is resolved.
         */
        post: operations["alerts_acknowledge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/{alert_id}/unacknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Unacknowledge
         * @description Withdraw the acknowledgement.
         */
        post: operations["alerts_unacknowledge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Subscribe
         * @description Subscribe to events. Reconnecting with Last-Event-ID delivers the events in between, or `reset` if they are too
         *     many. One user may have 40 of these connections.
         *
         *     The connection ends within seconds of the logout, or of the token's revocation; reconnecting is then answered with
         *     401.
         */
        get: operations["events_subscribe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Audit
         * @description Every change, newest first: who, what, before and after.
         */
        get: operations["audit_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/{entry_id}:changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Changes
         * @description The changes that the audit log keeps of a transaction which was discarded, one in each line, as the error queue
         *     shows them: what each wanted, the source's row before it, and the destination's row, with whole values. The entry
         *     tells how many were kept (`after.changes_kept`) and why no more (`after.partly_because`), how many there were
         *     (`before.changes_total`), of how many the destination's row was not read (`after.rows_not_read`; `problem` says
         *     why), and how many values are not whole (`after.values_cut`; `cut` marks each). The audit log records each export.
         */
        get: operations["audit_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/lab": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Lab
         * @description The actions that the lab offers on the demo, and those in effect. Without a demo, `available` is false.
         */
        get: operations["lab_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/lab/load": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change Load
         * @description Set the demo's load, in transactions per second, for ten minutes at most. It takes effect within 5 s.
         */
        put: operations["lab_load_change"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/lab/causes/{cause}:start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start Cause
         * @description Slow the demo's stream down. Any other cause that is on ends. The cause is undone after ten minutes (the missing
         *     index after three), as soon as the changes being applied permit it. A cause that is on begins again, with the given
         *     delay.
         */
        post: operations["lab_causes_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/lab/causes/{cause}:stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop Cause
         * @description End a cause. This has no effect if it is off.
         */
        post: operations["lab_causes_stop"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/lab:reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset
         * @description Restore the normal state: end every cause, and reset the load.
         */
        post: operations["lab_reset"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Healthz
         * @description The process runs.
         */
        get: operations["health_live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Readyz
         * @description 503 if the store cannot be reached; `degraded` if live data is missing, or nothing is observed.
         */
        get: operations["health_ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics
         * @description Prometheus' text format: this process, and the installation's open alerts. A token of the role metrics may read
         *     this and nothing else.
         */
        get: operations["health_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** Accepted */
        Accepted: {
            /**
             * Accepted
             * @default true
             */
            accepted: boolean;
        };
        /** AccessPolicy */
        AccessPolicy: {
            /** @description The users who must have a second factor. API tokens need none. */
            require_second_factor: components["schemas"]["Demand"];
            /**
             * Etag
             * @description Send as If-Match when updating.
             */
            etag: string;
        };
        /** AccessPolicyUpdate */
        AccessPolicyUpdate: {
            require_second_factor: components["schemas"]["Demand"];
        };
        /**
         * AddColumn
         * @description Behind the source's columns. All rows get the same value, or each gets that of an expression over its columns. It
         *     may be part of the destination's key, unless its expression reads columns that are not of the source's.
         */
        AddColumn: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "add_column";
            /**
             * Column
             * @example site
             */
            column: string;
            data_type: components["schemas"]["AddedType"];
            /**
             * Value
             * @description A value of the type as PostgreSQL writes it. Null: there is an expression.
             * @example north
             */
            value?: string | null;
            /**
             * Expression
             * @description In the language of rules, cast to the type: over the source's columns, under their names as the steps before this one have left them, and `schema`, `table` and `source`. It reads no column that a step masks, casts or adds before it. Null: there is a value.
             * @example price * amount
             */
            expression?: string | null;
        };
        /**
         * AddedType
         * @enum {string}
         */
        AddedType: "bigint" | "boolean" | "character varying" | "date" | "double precision" | "integer" | "jsonb" | "numeric" | "smallint" | "text" | "timestamp with time zone" | "timestamp without time zone" | "uuid";
        /**
         * AdvisorComponent
         * @description A row of COMPONENT. Paths that share a component share its id.
         */
        AdvisorComponent: {
            /**
             * Component Id
             * @description Unique over all paths, and the same in every run: `<stream id>:<component>`.
             */
            component_id: string;
            /** Component Name */
            component_name: string;
            /**
             * Component Db
             * @description The database that it works beside.
             */
            component_db: string;
            component_type: components["schemas"]["ComponentType"];
            /**
             * Engine
             * @description Name of the engine that it runs in.
             */
            engine: string | null;
            /** Stream Id */
            stream_id: string;
            /**
             * State
             * @description The momentary state in the last sample.
             */
            state: string | null;
            /**
             * Parts
             * @description Ids of its threads in live samples, such as reader, coordinator, server-1.
             */
            parts: string[];
        };
        /**
         * AdvisorDatabase
         * @description A row of DATABASE: a database that a path touches.
         */
        AdvisorDatabase: {
            /**
             * Global Name
             * @description The registered database's name.
             */
            global_name: string;
            /**
             * Role
             * @description SOURCE or DESTINATION.
             */
            role: string;
            /**
             * Address
             * @description host:port/dbname
             */
            address: string;
            /**
             * Version
             * @description PostgreSQL's, as of the last connection test.
             */
            version: string | null;
            /**
             * Last Queried
             * @description When this run read its catalogues. Null: it did not, or failed.
             */
            last_queried: string | null;
        };
        /**
         * AdvisorLink
         * @description A row of COMPONENT_LINK: from one component of a path to the next.
         */
        AdvisorLink: {
            /** Path Id */
            path_id: string;
            /**
             * Position
             * @description From 1, in the direction of the flow.
             */
            position: number;
            /** Source Component Id */
            source_component_id: string;
            /** Source Component Name */
            source_component_name: string;
            /** Source Component Db */
            source_component_db: string;
            source_component_type: components["schemas"]["ComponentType"];
            /** Destination Component Id */
            destination_component_id: string;
            /** Destination Component Name */
            destination_component_name: string;
            /** Destination Component Db */
            destination_component_db: string;
            destination_component_type: components["schemas"]["ComponentType"];
            /**
             * Back Pressured
             * @description The source component is held back by the destination component.
             */
            back_pressured: boolean | null;
            /** Messages Per Second */
            messages_per_second: number | null;
        };
        /**
         * AdvisorPath
         * @description A path: from one capture to one apply.
         */
        AdvisorPath: {
            /**
             * Path Id
             * @description `<stream id>`, or `<stream id>:<destination>` where a stream fans out.
             */
            path_id: string;
            /** Stream Id */
            stream_id: string;
            /** Stream Name */
            stream_name: string;
            /**
             * Destination Id
             * @description Empty in runs from before every path had one: their streams had one destination.
             */
            destination_id: string;
            /** Source Db */
            source_db: string;
            /** Destination Db */
            destination_db: string;
            /**
             * Component Ids
             * @description In the direction of the flow.
             */
            component_ids: string[];
            /**
             * Combined
             * @description Capture and apply are combined: nothing is propagated.
             */
            combined: boolean;
            /**
             * Path Name
             * @description “stream → destination”: how it is called everywhere.
             */
            readonly path_name: string;
        };
        /** Alert */
        Alert: {
            /** Id */
            id: string;
            rule: components["schemas"]["AlertRuleId"];
            /** Title */
            title: string;
            severity: components["schemas"]["AlertSeverity"];
            state: components["schemas"]["AlertState"];
            subject: components["schemas"]["AlertSubject"];
            /** Stream Id */
            stream_id: string | null;
            /**
             * Message
             * @description The problem, with its numbers.
             */
            message: string;
            /** Meaning */
            meaning: string;
            /**
             * Action
             * @description The recommended action.
             */
            action: string;
            /**
             * Page
             * @description The console's page that shows more, as a path.
             */
            page: string;
            /** Value */
            value: number | null;
            /** Threshold */
            threshold: number | null;
            /** Unit */
            unit: string;
            /** Evidence */
            evidence: {
                [key: string]: unknown;
            };
            /**
             * Pending At
             * Format: date-time
             */
            pending_at: string;
            /**
             * Fired At
             * @description Null while it is pending: the condition must hold for a while.
             */
            fired_at: string | null;
            /** Resolved At */
            resolved_at: string | null;
            /** @description cleared: the condition no longer held. not_applicable: its subject is gone or stopped, or the rule is off. */
            resolution: components["schemas"]["AlertResolution"] | null;
            /**
             * Over Since
             * @description Since when its condition no longer holds, or its subject is gone: `message`, `value` and `evidence` tell how it was until then. An alert that still fires is resolved soon unless it comes back. Null: it goes on.
             */
            over_since: string | null;
            /**
             * Silenced
             * @description A silence suppresses its notices now.
             */
            silenced: boolean;
            /** Acknowledged At */
            acknowledged_at: string | null;
            /** Acknowledged By */
            acknowledged_by: string | null;
            /**
             * Note
             * @description Given with the acknowledgement.
             */
            note: string | null;
            /**
             * Run Id
             * @description The advisor run that was taken when it fired.
             */
            run_id: number | null;
        };
        /** AlertAcknowledge */
        AlertAcknowledge: {
            /**
             * Note
             * @description A note on the work under way.
             * @default
             */
            note: string;
        };
        /** AlertChannel */
        AlertChannel: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            kind: components["schemas"]["ChannelKind"];
            /** Enabled */
            enabled: boolean;
            min_severity: components["schemas"]["AlertSeverity"];
            /** Send Resolved */
            send_resolved: boolean;
            /**
             * Settings
             * @description Empty for viewers if it is a webhook's address.
             */
            settings: {
                [key: string]: unknown;
            };
            /** Has Secret */
            has_secret: boolean;
            last_delivery: components["schemas"]["AlertDelivery"] | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            /** Etag */
            etag: string;
        };
        /**
         * AlertChannelUpdate
         * @description The kind cannot change. `settings` replace the previous ones as a whole.
         */
        AlertChannelUpdate: {
            /** Name */
            name?: string | null;
            /** Enabled */
            enabled?: boolean | null;
            min_severity?: components["schemas"]["AlertSeverity"] | null;
            /** Send Resolved */
            send_resolved?: boolean | null;
            /** Settings */
            settings?: {
                [key: string]: unknown;
            } | null;
            /**
             * Secret
             * @description Unchanged if omitted; empty: none. Required again if the host, port, user or trusted certificates change, or if TLS becomes weaker.
             */
            secret?: string | null;
        };
        /**
         * AlertCounts
         * @description For the bell in the header. `unacknowledged`: firing alerts that nobody has acknowledged or silenced.
         */
        AlertCounts: {
            /**
             * Evaluated At
             * @description When the rules were last evaluated. Null: nobody knows, as without Redis.
             */
            evaluated_at: string | null;
            /**
             * Outdated
             * @description Why the alerts are not those of now, in words: the rules have not been evaluated for 15 s or longer, so that none begins or ends. Null: they are.
             */
            outdated: string | null;
            /** Firing */
            firing: number;
            /** Critical */
            critical: number;
            /** Unacknowledged */
            unacknowledged: number;
            /** Pending */
            pending: number;
        };
        /** AlertDelivery */
        AlertDelivery: {
            /** Id */
            id: string;
            /** Channel Id */
            channel_id: string;
            /** Channel Name */
            channel_name: string;
            /**
             * Alert Id
             * @description Null: a test.
             */
            alert_id: string | null;
            /** Title */
            title: string;
            event: components["schemas"]["NoticeEvent"];
            state: components["schemas"]["DeliveryState"];
            /** Tries */
            tries: number;
            /** Next Try At */
            next_try_at: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Finished At */
            finished_at: string | null;
            /** Took Ms */
            took_ms: number | null;
            /** @description The error of the last attempt, with its cure. */
            error: components["schemas"]["DeliveryError"] | null;
        };
        /**
         * AlertEvent
         * @description SSE event `alert`: one has begun to fire, was resolved, or was acknowledged; read the alerts for details.
         */
        AlertEvent: {
            /** Alert Id */
            alert_id: string;
            /** Rule */
            rule: string;
            /** Stream Id */
            stream_id: string | null;
            /** Severity */
            severity: string;
            /** State */
            state: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /**
         * AlertFilter
         * @enum {string}
         */
        AlertFilter: "open" | "pending" | "firing" | "resolved" | "all";
        /**
         * AlertPage
         * @description A part of a list. Send `next_cursor` as `cursor` to get the following part; null means the end.
         */
        AlertPage: {
            /**
             * Evaluated At
             * @description When the rules were last evaluated. Null: nobody knows, as without Redis.
             */
            evaluated_at: string | null;
            /**
             * Outdated
             * @description Why the alerts are not those of now, in words: the rules have not been evaluated for 15 s or longer, so that none begins or ends. Null: they are.
             */
            outdated: string | null;
            /** Items */
            items: components["schemas"]["Alert"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * AlertResolution
         * @enum {string}
         */
        AlertResolution: "cleared" | "not_applicable";
        /**
         * AlertRule
         * @description A condition that raises alerts. It has nothing to do with the rules of a stream's tables.
         */
        AlertRule: {
            id: components["schemas"]["AlertRuleId"];
            /** Title */
            title: string;
            /** Meaning */
            meaning: string;
            /** Action */
            action: string;
            subject: components["schemas"]["SubjectType"];
            /**
             * Per Stream
             * @description It can be set for single streams.
             */
            per_stream: boolean;
            /** Thresholds */
            thresholds: components["schemas"]["AlertThreshold"][];
            default: components["schemas"]["AlertRuleValues"];
            settings: components["schemas"]["AlertRuleSettings"];
            effective: components["schemas"]["AlertRuleValues"];
            /** Streams */
            streams: components["schemas"]["AlertStreamRule"][];
            /** Etag */
            etag: string;
        };
        /**
         * AlertRuleId
         * @enum {string}
         */
        AlertRuleId: "no_progress" | "latency" | "spill_disk" | "spill_limit" | "staging_limit" | "archive_lag" | "backlog_full" | "wal_retention" | "slot_inactive" | "slot_idle" | "slot_lost" | "database_unreachable" | "component_aborted" | "table_trouble" | "error_queue" | "engine_silent" | "certificate_expiring" | "token_expiring" | "history_unwritten";
        /**
         * AlertRuleSettings
         * @description Differences from the defaults. A field that is missing or null has the value of the next wider scope.
         */
        AlertRuleSettings: {
            /** Enabled */
            enabled?: boolean | null;
            severity?: components["schemas"]["AlertSeverity"] | null;
            /** Hold Seconds */
            hold_seconds?: number | null;
            /** Thresholds */
            thresholds?: {
                [key: string]: number;
            };
        };
        /** AlertRuleValues */
        AlertRuleValues: {
            /** Enabled */
            enabled: boolean;
            severity: components["schemas"]["AlertSeverity"];
            /**
             * Hold Seconds
             * @description How long the condition must hold before the alert fires.
             */
            hold_seconds: number;
            /** Thresholds */
            thresholds: {
                [key: string]: number;
            };
        };
        /** AlertRules */
        AlertRules: {
            /** Rules */
            rules: components["schemas"]["AlertRule"][];
        };
        /**
         * AlertSeverity
         * @enum {string}
         */
        AlertSeverity: "warning" | "critical";
        /** AlertSilence */
        AlertSilence: {
            /** Id */
            id: string;
            rule: components["schemas"]["AlertRuleId"] | null;
            /** Stream Id */
            stream_id: string | null;
            /** Stream Name */
            stream_name: string | null;
            /**
             * Until
             * Format: date-time
             */
            until: string;
            /** Reason */
            reason: string;
            /** Created By */
            created_by: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * AlertSilenceCreate
         * @description Suppresses notices. Alerts continue to be shown; those that still fire at its end are notified then.
         */
        AlertSilenceCreate: {
            /** @description Null: every alert rule. */
            rule?: components["schemas"]["AlertRuleId"] | null;
            /**
             * Stream Id
             * @description Null: every stream, and alerts that concern no stream.
             */
            stream_id?: string | null;
            /**
             * Seconds
             * @description From now on.
             */
            seconds: number;
            /**
             * Reason
             * @default
             */
            reason: string;
        };
        /**
         * AlertState
         * @enum {string}
         */
        AlertState: "pending" | "firing" | "resolved";
        /** AlertStreamRule */
        AlertStreamRule: {
            /** Stream Id */
            stream_id: string;
            /** Stream Name */
            stream_name: string;
            settings: components["schemas"]["AlertRuleSettings"];
            effective: components["schemas"]["AlertRuleValues"];
        };
        /** AlertSubject */
        AlertSubject: {
            type: components["schemas"]["SubjectType"];
            /** Id */
            id: string;
            /** Name */
            name: string;
        };
        /** AlertThreshold */
        AlertThreshold: {
            /** Name */
            name: string;
            /** Label */
            label: string;
            /** Unit */
            unit: string;
            /** Default */
            default: number;
            /** Minimum */
            minimum: number;
            /** Maximum */
            maximum: number;
        };
        /**
         * Analysis
         * @description The six tables, and the paths that they are about.
         */
        Analysis: {
            /**
             * Begin At
             * @description Null when there was no sample with a rate.
             */
            begin_at: string | null;
            /** End At */
            end_at: string | null;
            /**
             * Samples
             * @description Samples with rates that were analysed, of the path that has most.
             */
            samples: number;
            thresholds: components["schemas"]["Thresholds"];
            /** Paths */
            paths: components["schemas"]["AdvisorPath"][];
            /** Databases */
            databases: components["schemas"]["AdvisorDatabase"][];
            /** Components */
            components: components["schemas"]["AdvisorComponent"][];
            /** Component Links */
            component_links: components["schemas"]["AdvisorLink"][];
            /** Component Statistics */
            component_statistics: components["schemas"]["ComponentStatistic"][];
            /** Path Statistics */
            path_statistics: components["schemas"]["PathStatistic"][];
            /** Path Bottlenecks */
            path_bottlenecks: components["schemas"]["PathBottleneck"][];
        };
        /** AppliedCure */
        AppliedCure: {
            /** Id */
            id: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Applied By */
            applied_by: string;
            /** Run Id */
            run_id: number | null;
            finding: components["schemas"]["Finding"];
            /** Stream Id */
            stream_id: string;
            /** Path Id */
            path_id: string;
            /** Parameters Before */
            parameters_before: {
                [key: string]: boolean | number | string;
            };
            /** Parameters After */
            parameters_after: {
                [key: string]: boolean | number | string;
            };
            /**
             * Destination Id
             * @description The destination whose own parameters these are. Null: the stream's.
             */
            destination_id: string | null;
            /**
             * By Hand
             * @description A person carried it out, and undoes it if necessary.
             */
            by_hand: boolean;
            /**
             * Sql
             * @description The SQL to run at the destination's database. Null: parameters are changed.
             */
            sql: string | null;
            /** Undo Sql */
            undo_sql: string | null;
            /**
             * Operation Id
             * @description The last operation for it. Null: there is none.
             */
            operation_id: string | null;
            state: components["schemas"]["CureState"];
            /** Before Run Id */
            before_run_id: number | null;
            /** After Run Id */
            after_run_id: number | null;
            /** Measure At */
            measure_at: string | null;
            /**
             * Outcome
             * @description In words: what was compared and what came of it.
             */
            outcome: string | null;
            /** Undone At */
            undone_at: string | null;
        };
        /** AuditEntry */
        AuditEntry: {
            /** Id */
            id: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** Actor Id */
            actor_id: string | null;
            /** Actor Name */
            actor_name: string;
            /**
             * Via
             * @enum {string}
             */
            via: "session" | "token" | "system" | "anonymous";
            /**
             * Action
             * @example databases_create
             */
            action: string;
            /**
             * Sentence
             * @description The action in words, without who and on what: Parked transaction 17 discarded.
             */
            sentence: string;
            /** Target Type */
            target_type: string;
            /** Target Id */
            target_id: string;
            /** Target Name */
            target_name: string;
            /**
             * Before
             * @description The resource before, without secrets.
             */
            before: {
                [key: string]: unknown;
            } | null;
            /**
             * After
             * @description The resource after, without secrets.
             */
            after: {
                [key: string]: unknown;
            } | null;
            /** Request Id */
            request_id: string;
            /** Address */
            address: string | null;
        };
        /**
         * Backlog
         * @description Changes that wait for a destination on the capturing engine's disk: once those that it has not taken fill half of
         *     the queue, they go there.
         */
        Backlog: {
            /** @description FULL: the limit is reached, and the destination holds the source back. */
            state: components["schemas"]["BacklogState"];
            /**
             * Bytes
             * @description On disk, compressed.
             */
            bytes: number;
            /**
             * Lcrs
             * @description On disk.
             */
            lcrs: number;
            /**
             * Frames
             * @description LCRs and marks of transactions, in memory and on disk.
             */
            frames: number;
            /**
             * Age Seconds
             * @description How long the oldest of them have been on disk. 0: none is.
             */
            age_seconds: number;
            /**
             * Limit Bytes
             * @description The parameter queue_spill_limit_mb.
             */
            limit_bytes: number;
        };
        /**
         * BacklogState
         * @enum {string}
         */
        BacklogState: "IN MEMORY" | "ON DISK" | "FULL";
        /**
         * BeforeIs
         * @description Where a change's old row comes from.
         * @enum {string}
         */
        BeforeIs: "whole" | "identity" | "followed" | "unknown";
        /**
         * Blocker
         * @description A session that holds a lock, or runs a transaction, which another one waits for.
         */
        Blocker: {
            /**
             * Pid
             * @description The id of its server process. 0: a prepared transaction, which has none.
             */
            pid: number;
            /**
             * User
             * @description Null, like the fields that follow, if the stream's user may not see it.
             */
            user: string | null;
            /** Application Name */
            application_name: string | null;
            /**
             * State
             * @description The session's state in pg_stat_activity.
             */
            state: string | null;
            /**
             * Since
             * @description When its transaction began, by its server's clock.
             */
            since: string | null;
        };
        /**
         * CaptureKind
         * @description logical: the source decodes its WAL. wal: the engine receives the WAL and mines it on its own host.
         * @enum {string}
         */
        CaptureKind: "logical" | "wal";
        /**
         * CastColumn
         * @description The destination gets each value as PostgreSQL's cast makes it. Columns of the key cannot be cast.
         */
        CastColumn: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "cast_column";
            /**
             * Column
             * @description Its name as the steps before this one have left it.
             * @example amount
             */
            column: string;
            /** @description No `jsonb`. The cast may not depend on PostgreSQL's settings. */
            data_type: components["schemas"]["AddedType"];
        };
        /**
         * CauseKind
         * @enum {string}
         */
        CauseKind: "duplicate_key" | "missing_row" | "row_differs" | "row_not_written" | "several_rows" | "missing_parent" | "null_refused" | "check_violated" | "value_too_long" | "value_refused" | "missing_privilege" | "trigger" | "table_differs" | "copy_inconsistent" | "waits" | "freed" | "other";
        /**
         * CauseName
         * @enum {string}
         */
        CauseName: "trigger" | "index" | "lock" | "network";
        /** Change */
        Change: {
            /**
             * Number
             * @description In the search, from 1, in the order of commits.
             */
            number: number;
            /** Xid */
            xid: number;
            /** Commit Lsn */
            commit_lsn: string;
            /**
             * Commit Time
             * Format: date-time
             */
            commit_time: string;
            /** Lsn */
            lsn: string;
            /**
             * Origin
             * @description The replication origin, if the transaction came to the source by one.
             */
            origin: string | null;
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            operation: components["schemas"]["ChangeOperation"];
            /** @description Where `before` comes from. `whole`: the WAL has the whole old row. `identity`: only its columns of the replica identity. `followed`: from the change of the same row that the search found before it. */
            before_is: components["schemas"]["BeforeIs"];
            /** Columns */
            columns: components["schemas"]["ChangedColumn"][];
            /**
             * Undo
             * @description SQL that undoes the change. Null: `undo_note` says why there is none.
             */
            undo: string | null;
            /** Undo Note */
            undo_note: string | null;
        };
        /** ChangeEdit */
        ChangeEdit: {
            /**
             * Left Out
             * @description The change is not applied; the transaction's others are.
             * @default false
             */
            left_out: boolean;
            /**
             * Values
             * @description Other new values of an INSERT or UPDATE, by column: in PostgreSQL's text form, null is NULL. The destination's types check them when the transaction is tried or executed.
             * @default {}
             */
            values: {
                [key: string]: string | null;
            };
            /**
             * Reason
             * @description Why the two databases may differ from now on. The queue shows it, and the audit log keeps it with the change.
             */
            reason: string;
        };
        /**
         * ChangeOperation
         * @enum {string}
         */
        ChangeOperation: "INSERT" | "UPDATE" | "DELETE" | "TRUNCATE";
        /** ChangedColumn */
        ChangedColumn: {
            /** Name */
            name: string;
            /** Type */
            type: string;
            /**
             * Key
             * @description A column of the table's replica identity.
             */
            key: boolean;
            /** @description Null: not known, or there was none. */
            before: components["schemas"]["ChangedValue"] | null;
            /** @description Null: not known, or there is none. */
            after: components["schemas"]["ChangedValue"] | null;
        };
        /** ChangedValue */
        ChangedValue: {
            /**
             * Text
             * @description The server's text form. It is null where the value is NULL or masked.
             */
            text: string | null;
            /**
             * Cut
             * @description The value is longer than what is shown.
             */
            cut: boolean;
            /**
             * Masked
             * @description The stream masks or drops the column: its values stay at the engine.
             */
            masked: boolean;
        };
        /**
         * ChannelKind
         * @enum {string}
         */
        ChannelKind: "webhook" | "email" | "log";
        /** Check */
        Check: {
            /**
             * Id
             * @description Stable: wal_level, replication_slots, table_keys, ...
             */
            id: string;
            side: components["schemas"]["CheckSide"];
            /**
             * Database Id
             * @description The one of several destinations that was checked. Null: the source, or the only one.
             */
            database_id: string | null;
            /** Title */
            title: string;
            /** @description consent: nothing is created until somebody accepts what it says. */
            status: components["schemas"]["CheckStatus"];
            /** Detail */
            detail: string;
            /**
             * Items
             * @description The subjects of the detail, one by one.
             */
            items: string[];
            /** Cure */
            cure: string | null;
            /**
             * Sql
             * @description The cure as SQL, ready to run by a user with the necessary rights.
             */
            sql: string | null;
            /**
             * Sql At
             * @description The database to run `sql` in, at this side: its name in Thalweg, and its address. Null without `sql`.
             * @example shop (db.example.com:5432/shop)
             */
            sql_at: string | null;
            /**
             * Consent
             * @description Send this in `accept` to accept it: the check's id and a digest of its text, so that nothing else is accepted. Null where there is nothing to accept.
             */
            consent: string | null;
            /**
             * Accepted
             * @description The request's `accept` contains this consent.
             * @default false
             */
            accepted: boolean;
        };
        /**
         * CheckSide
         * @enum {string}
         */
        CheckSide: "source" | "destination";
        /**
         * CheckStatus
         * @enum {string}
         */
        CheckStatus: "ok" | "warning" | "consent" | "failed";
        /** ComparedBottleneck */
        ComparedBottleneck: {
            /** Path Id */
            path_id: string;
            /** Path Name */
            path_name: string;
            /**
             * Before
             * @description Null: the path is not in that run.
             */
            before: string | null;
            /** After */
            after: string | null;
            /** Changed */
            changed: boolean;
        };
        /** ComparedStatistic */
        ComparedStatistic: {
            /**
             * Path Id
             * @description Null for a statistic of a component.
             */
            path_id: string | null;
            /**
             * Path Name
             * @description “stream → destination”, or the stream where a component is of several paths.
             */
            path_name: string;
            /** Component Id */
            component_id: string | null;
            /** Component Name */
            component_name: string | null;
            component_type: components["schemas"]["ComponentType"] | null;
            /** Sub Component Type */
            sub_component_type: string | null;
            /** Thread */
            thread: number | null;
            /** Statistic Name */
            statistic_name: string;
            /** Statistic Unit */
            statistic_unit: string;
            /** Before */
            before: number | null;
            /** After */
            after: number | null;
            /**
             * Change
             * @description after - before
             */
            change: number | null;
            /**
             * Change Percent
             * @description `change` in percent of `before`. Null when that is zero or unknown.
             */
            change_percent: number | null;
        };
        /**
         * ComparedTable
         * @description A table whose rows are compared before an update or delete: a row that is not as the source's row was before is a
         *     conflict.
         */
        ComparedTable: {
            /**
             * Schema
             * @description With `table`.
             * @example public
             */
            schema?: string;
            /**
             * Table
             * @description The destination's table, by its exact name. Omitted: any.
             * @example orders
             */
            table?: string;
            /**
             * Columns
             * @description The columns to compare, by their names at the destination. Omitted: all of which the change brings the old value. With `table`.
             * @example [
             *       "amount"
             *     ]
             */
            columns?: string[];
        };
        /** Comparison */
        Comparison: {
            before: components["schemas"]["RunSummary"];
            after: components["schemas"]["RunSummary"];
            /** Statistics */
            statistics: components["schemas"]["ComparedStatistic"][];
            /** Bottlenecks */
            bottlenecks: components["schemas"]["ComparedBottleneck"][];
        };
        /** ComponentSample */
        ComponentSample: {
            /**
             * Id
             * @description Stable in its stream: capture and queue, which all destinations share; after a destination's id and a colon sender, receiver, apply-queue, reader, coordinator, server-1: warehouse:reader
             */
            id: string;
            /**
             * Destination Id
             * @description Its destination. Null: shared by all destinations. A path has the shared ones and those of one destination.
             */
            destination_id: string | null;
            /**
             * Engine Id
             * @description The engine that it runs in.
             */
            engine_id: string | null;
            type: components["schemas"]["ComponentType"];
            /** Name */
            name: string;
            /**
             * Sub Component
             * @description APPLY READER, APPLY COORDINATOR, APPLY SERVER, QUEUE SPILL, WAL SHIPMENT or LOGMINER BUILDER.
             */
            sub_component: string | null;
            /**
             * Server
             * @description Number of the applier.
             */
            server: number | null;
            /**
             * State
             * @description The momentary state, such as CAPTURING CHANGES.
             */
            state: string;
            /** Lcrs Per Second */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            time_percent: components["schemas"]["TimePercent"] | null;
            /**
             * Counters
             * @description Cumulative since the component started.
             */
            counters: {
                [key: string]: number;
            };
            /**
             * Gauges
             * @description Momentary values: depth, latency_us, ...
             */
            gauges: {
                [key: string]: number;
            };
            /**
             * Counter Rates
             * @description Every counter as a rate per second.
             */
            counter_rates: {
                [key: string]: number;
            } | null;
        };
        /**
         * ComponentStatistic
         * @description A row of COMPONENT_STAT. Rows without sub-component are the whole component's; without thread, the mean of its
         *     threads: percentages are normalised per thread.
         */
        ComponentStatistic: {
            /** Component Id */
            component_id: string;
            /** Component Name */
            component_name: string;
            /** Component Db */
            component_db: string;
            component_type: components["schemas"]["ComponentType"];
            /** Sub Component Type */
            sub_component_type: string | null;
            /**
             * Thread
             * @description Number of the applier: the SESSION_ID of Streams.
             */
            thread: number | null;
            /**
             * Statistic Time
             * Format: date-time
             */
            statistic_time: string;
            /**
             * Statistic Name
             * @example MESSAGE APPLY RATE
             * @example IDLE
             * @example EVENT: EXECUTE
             */
            statistic_name: string;
            /** Statistic Value */
            statistic_value: number | null;
            statistic_unit: components["schemas"]["Unit"];
        };
        /**
         * ComponentType
         * @enum {string}
         */
        ComponentType: "CAPTURE" | "QUEUE" | "APPLY" | "PROPAGATION SENDER" | "PROPAGATION RECEIVER";
        /** ConflictCount */
        ConflictCount: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            kind: components["schemas"]["LoggedKind"];
            /**
             * Sqlstate
             * @description The SQLSTATE of the kind `error`. Null for the others.
             */
            sqlstate: string | null;
            action: components["schemas"]["LoggedAction"];
            /** Changes */
            changes: number;
            /**
             * Newest
             * Format: date-time
             */
            newest: string;
        };
        /** ConflictCounts */
        ConflictCounts: {
            /**
             * Counts
             * @description The largest first, 1000 at most.
             */
            counts: components["schemas"]["ConflictCount"][];
        };
        /**
         * ConflictHandler
         * @description The fate of a single change with such a conflict, while the rest of its transaction is applied.
         */
        ConflictHandler: {
            kind: components["schemas"]["ConflictKind"];
            /**
             * Schema
             * @description With `table`.
             * @example public
             */
            schema?: string;
            /**
             * Table
             * @description The table whose change failed, by its exact name in the stream. Omitted: any.
             * @example orders
             */
            table?: string;
            /** @description `discard`: the change is left out. `overwrite`: an INSERT takes the place of the row with its key (`insert_exists`), an UPDATE inserts the row that it lacks (`update_missing`), a row that is not as the source's was is changed or deleted all the same (`update_origin_differs`, `delete_origin_differs`). Of two rows, for `insert_exists` and `update_origin_differs`: `maximum` and `minimum`: the one with the higher or lower value of the column `by` wins; `latest`: the one with the later value of `by`, or without it the one that was committed later; `priority`: the one whose value of `by` stands first in `order`. Of the columns in `columns`, each for itself: `delta`, for `update_origin_differs`: the difference of the source's two values is added; `append`: the elements of the source's array that the destination's lacks are appended; `merge`: the members of a jsonb object that the source has changed are changed; `expression`: the column gets the value of `expression`. `error`: error_policies decides about the transaction. */
            action: components["schemas"]["HandlerAction"];
            /**
             * Columns
             * @description The group of columns that the handler decides about, by their names at the destination. A handler of the kind and table without it, behind these, decides about all others. Omitted: all. With `table`.
             */
            columns?: string[];
            /**
             * By
             * @description The column that decides, for `maximum`, `minimum`, `latest` and `priority`.
             * @example changed_at
             */
            by?: string;
            /**
             * Order
             * @description Values of `by` for `priority`, as a cast to text writes them, the best first. All others, and NULL, stand behind them.
             * @example [
             *       "headquarters",
             *       "branch"
             *     ]
             */
            order?: string[];
            /**
             * Expression
             * @description SQL for `expression`, which the destination computes with the rights of its user. It reads the source's row as `new` and, before an UPDATE, `old`, and the destination's as `t`. Functions outside pg_catalog need their schema. Only admins may write one.
             * @example greatest(new.price, t.price)
             */
            expression?: string;
            /** @description The row whose values stay where both are the same; `discard` if omitted. */
            tie?: components["schemas"]["Tie"];
        };
        /**
         * ConflictKind
         * @description Named as PostgreSQL 18 names them; it has none for a missing parent row.
         * @enum {string}
         */
        ConflictKind: "insert_exists" | "update_exists" | "update_missing" | "delete_missing" | "foreign_key_missing" | "update_origin_differs" | "delete_origin_differs" | "multiple_unique_conflicts";
        /** ConnectionTest */
        ConnectionTest: {
            /** Reachable */
            reachable: boolean;
            /**
             * Latency Ms
             * @description Round trip of one statement on the open connection.
             */
            latency_ms: number | null;
            /** Connect Ms */
            connect_ms: number | null;
            /**
             * Version
             * @description The server's name of it, such as 15.20.
             */
            version: string | null;
            /** Version Number */
            version_number: number | null;
            /** System Identifier */
            system_identifier: string | null;
            role: components["schemas"]["RoleFacts"] | null;
            /**
             * Tls
             * @description True when the connection is encrypted.
             */
            tls: boolean | null;
            /**
             * Code
             * @description Why it failed: database_unreachable, authentication_failed, unknown_database, tls_failed, insufficient_privilege, database_error; with `read_from` standby also source_standby_missing, source_read_only (no primary), source_changed (not one primary and one standby of one cluster) and unsupported_version. Null when it worked.
             */
            code: string | null;
            /** Message */
            message: string | null;
            /** Cure */
            cure: string | null;
            /** Sql */
            sql: string | null;
            /**
             * Servers
             * @description With `read_from` standby: the role of each server. The other fields describe the standby.
             */
            servers: components["schemas"]["SeenServer"][];
        };
        /** CopyPoint */
        CopyPoint: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** Rows Copied */
            rows_copied: number;
        };
        /**
         * CopyStage
         * @enum {string}
         */
        CopyStage: "rows" | "indexes" | "finished";
        /** Cure */
        Cure: {
            kind: components["schemas"]["CureKind"];
            /**
             * Text
             * @description The change, in words.
             */
            text: string;
            /**
             * Parameters
             * @description Stream parameters. Empty but for kind `parameter`.
             */
            parameters: components["schemas"]["ParameterChange"][];
            /**
             * Sql
             * @description Ready to run, at `database`.
             */
            sql: string | null;
            /**
             * Database
             * @description The registered database's name.
             */
            database: string | null;
            /** Database Id */
            database_id: string | null;
            /**
             * Run As
             * @description The users who may run `sql` there, in words.
             */
            run_as: string | null;
            /**
             * Restart Needed
             * @description The engine starts the stream's components anew for it.
             */
            restart_needed: boolean;
            /** @description The index that `sql` creates; the control plane can make and drop it. Null: a person runs `sql`. */
            index: components["schemas"]["NewIndex"] | null;
            /**
             * Destination Id
             * @description The destination whose own parameters change. Null: those of the stream.
             */
            destination_id: string | null;
        };
        /** CureApply */
        CureApply: {
            /** Run Id */
            run_id: number;
            /** Finding Id */
            finding_id: string;
            /**
             * Cure Index
             * @description Index of the cure in the finding's `cures`.
             * @default 0
             */
            cure_index: number;
            /**
             * Measure After Seconds
             * @description How long the path runs with the change before it is judged.
             * @default 30
             */
            measure_after_seconds: number;
            /**
             * By Hand
             * @description A person has carried the cure out: nothing is changed, only judged, beside the finding's run.
             * @default false
             */
            by_hand: boolean;
        };
        /**
         * CureKind
         * @description The actor that carries a cure out: the control plane, an operator at a database, or a person by other means.
         * @enum {string}
         */
        CureKind: "parameter" | "sql" | "action";
        /**
         * CureState
         * @description MEASURING: applied, the second snapshot is due at `measure_at`. APPLYING and UNDOING: its operation runs.
         * @enum {string}
         */
        CureState: "applying" | "failed" | "undoing" | "measuring" | "helped" | "no_difference" | "worse" | "not_measured" | "undone";
        /** Database */
        Database: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Host */
            host: string;
            /** Port */
            port: number;
            /** Dbname */
            dbname: string;
            /** User */
            user: string;
            sslmode: components["schemas"]["SslMode"];
            /** Options */
            options: {
                [key: string]: string;
            };
            read_from: components["schemas"]["ReadFrom"];
            sslrootcert: components["schemas"]["StoredPem"] | null;
            sslcert: components["schemas"]["StoredPem"] | null;
            sslkey: components["schemas"]["StoredPem"] | null;
            sslcrl: components["schemas"]["StoredPem"] | null;
            /** Has Password */
            has_password: boolean;
            /**
             * Version
             * @description The server's version at the last successful test.
             */
            version: string | null;
            /**
             * Tested At
             * @description Null: its connection, as it is now, has not been tested.
             */
            tested_at: string | null;
            /**
             * Test Code
             * @description Outcome of the last test: null when it worked.
             */
            test_code: string | null;
            /**
             * Source Of
             * @description Ids of the streams that capture from it.
             */
            source_of: string[];
            /**
             * Destination Of
             * @description Ids of the streams that apply to it.
             */
            destination_of: string[];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            /**
             * Etag
             * @description Send as If-Match when updating.
             */
            etag: string;
        };
        /** DatabaseCreate */
        DatabaseCreate: {
            /**
             * Uri
             * @description postgresql://user:password@host:5432/database?sslmode=require, split into its fields.
             */
            uri?: string | null;
            /**
             * Service
             * @description A service of the administrator's service file. Its settings are copied.
             * @default
             */
            service: string;
            /**
             * Host
             * @description A host name or an address. Of several, separated by commas, the first that answers is used: `db1,db2:5433,[::1]`. A port beside a name takes precedence over `port`.
             * @default
             */
            host: string;
            /**
             * Port
             * @default 5432
             */
            port: number;
            /**
             * Dbname
             * @default
             */
            dbname: string;
            /**
             * User
             * @default
             */
            user: string;
            /**
             * Password
             * @default
             */
            password: string;
            /** @default prefer */
            sslmode: components["schemas"]["SslMode"];
            /**
             * Sslrootcert
             * @description Certificates (PEM contents) that the server's certificate must derive from. Stored encrypted, never shown again.
             * @default
             */
            sslrootcert: string;
            /**
             * Sslcert
             * @description The certificate (PEM contents) that this user presents to the server.
             * @default
             */
            sslcert: string;
            /**
             * Sslkey
             * @description The certificate's key (PEM contents, without a passphrase). Stored encrypted, never shown again.
             * @default
             */
            sslkey: string;
            /**
             * Sslcrl
             * @description Certificates that are no longer valid (a revocation list as PEM contents).
             * @default
             */
            sslcrl: string;
            /**
             * Options
             * @description More libpq options, such as target_session_attrs.
             */
            options?: {
                [key: string]: string;
            };
            /**
             * @description `standby`: `host` names the servers of one cluster, PostgreSQL 16 or later. Streams decode and copy at the standby, and make their few writes at the primary. Cannot change while streams capture from the database.
             * @default primary
             */
            read_from: components["schemas"]["ReadFrom"];
            /** Name */
            name: string;
        };
        /** DatabaseRef */
        DatabaseRef: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Address
             * @description host:port/dbname
             */
            address: string;
        };
        /** DatabaseTestRequest */
        DatabaseTestRequest: {
            /**
             * Uri
             * @description postgresql://user:password@host:5432/database?sslmode=require, split into its fields.
             */
            uri?: string | null;
            /**
             * Service
             * @description A service of the administrator's service file. Its settings are copied.
             * @default
             */
            service: string;
            /**
             * Host
             * @description A host name or an address. Of several, separated by commas, the first that answers is used: `db1,db2:5433,[::1]`. A port beside a name takes precedence over `port`.
             * @default
             */
            host: string;
            /**
             * Port
             * @default 5432
             */
            port: number;
            /**
             * Dbname
             * @default
             */
            dbname: string;
            /**
             * User
             * @default
             */
            user: string;
            /**
             * Password
             * @default
             */
            password: string;
            /** @default prefer */
            sslmode: components["schemas"]["SslMode"];
            /**
             * Sslrootcert
             * @description Certificates (PEM contents) that the server's certificate must derive from. Stored encrypted, never shown again.
             * @default
             */
            sslrootcert: string;
            /**
             * Sslcert
             * @description The certificate (PEM contents) that this user presents to the server.
             * @default
             */
            sslcert: string;
            /**
             * Sslkey
             * @description The certificate's key (PEM contents, without a passphrase). Stored encrypted, never shown again.
             * @default
             */
            sslkey: string;
            /**
             * Sslcrl
             * @description Certificates that are no longer valid (a revocation list as PEM contents).
             * @default
             */
            sslcrl: string;
            /**
             * Options
             * @description More libpq options, such as target_session_attrs.
             */
            options?: {
                [key: string]: string;
            };
            /**
             * @description `standby`: `host` names the servers of one cluster, PostgreSQL 16 or later. Streams decode and copy at the standby, and make their few writes at the primary. Cannot change while streams capture from the database.
             * @default primary
             */
            read_from: components["schemas"]["ReadFrom"];
            /**
             * Database Id
             * @description Use what is stored with this database where `password`, a certificate or a key is empty. The stored password is used only if it would be sent to the same place, with at least the same TLS.
             */
            database_id?: string | null;
        };
        /** DatabaseUpdate */
        DatabaseUpdate: {
            /** Name */
            name?: string | null;
            /**
             * Uri
             * @description postgresql://user:password@host:5432/database?sslmode=require, split into its fields. Port and options become those of the URI; what else it does not name stays.
             */
            uri?: string | null;
            /** Host */
            host?: string | null;
            /** Port */
            port?: number | null;
            /** Dbname */
            dbname?: string | null;
            /** User */
            user?: string | null;
            /**
             * Password
             * @description Unchanged if omitted. Required again if the host, port, dbname or user changes, or if TLS becomes weaker, because it would be sent there.
             */
            password?: string | null;
            sslmode?: components["schemas"]["SslMode"] | null;
            /**
             * Sslrootcert
             * @description Certificates (PEM contents) that the server's certificate must derive from. Stored encrypted, never shown again. Empty: none.
             */
            sslrootcert?: string | null;
            /**
             * Sslcert
             * @description The certificate (PEM contents) that this user presents to the server. Empty: none.
             */
            sslcert?: string | null;
            /**
             * Sslkey
             * @description The certificate's key (PEM contents, without a passphrase). Stored encrypted, never shown again. Empty: none.
             */
            sslkey?: string | null;
            /**
             * Sslcrl
             * @description Certificates that are no longer valid (a revocation list as PEM contents). Empty: none.
             */
            sslcrl?: string | null;
            /** Options */
            options?: {
                [key: string]: string;
            } | null;
            /** @description `standby`: `host` names the servers of one cluster, PostgreSQL 16 or later. Streams decode and copy at the standby, and make their few writes at the primary. Cannot change while streams capture from the database. */
            read_from?: components["schemas"]["ReadFrom"] | null;
        };
        /** DeliveryError */
        DeliveryError: {
            /** Code */
            code: string;
            /** Message */
            message: string;
            /** Cure */
            cure: string;
        };
        /**
         * DeliveryState
         * @enum {string}
         */
        DeliveryState: "pending" | "delivered" | "failed";
        /**
         * Demand
         * @description The users who must have a second factor.
         * @enum {string}
         */
        Demand: "nobody" | "admins" | "everybody";
        /**
         * DesiredStatus
         * @description The status that users want for a stream or a destination. Every desired document sends it to the engine.
         * @enum {string}
         */
        DesiredStatus: "ENABLED" | "DISABLED" | "DROPPED";
        /** DestinationAdd */
        DestinationAdd: {
            /** Database Id */
            database_id: string;
            /**
             * Engine Id
             * @description The engine that applies, ideally near the destination. If omitted: the capturing engine.
             */
            engine_id?: string | null;
            /**
             * Parameters
             * @description Overrides of the stream's parameters. A parameter whose `per_destination` is false can be set only for the stream.
             */
            parameters?: {
                [key: string]: boolean | number | string | {
                    [key: string]: unknown;
                }[];
            };
            /**
             * Row Rules
             * @description Row rules for this destination alone: of what the stream's own rules let pass, its copy and its changes.
             */
            row_rules?: components["schemas"]["ScopedRules"][];
            /**
             * Accept
             * @description The consents of checks that are accepted, as the preflight names them; or a check's id alone, to accept whatever that check says. Only admins may accept `carried_code`.
             */
            accept?: string[];
        };
        /** DestinationCreate */
        DestinationCreate: {
            /** Database Id */
            database_id: string;
            /**
             * Engine Id
             * @description The engine that applies, ideally near the destination. If omitted: the capturing engine.
             */
            engine_id?: string | null;
            /**
             * Parameters
             * @description Overrides of the stream's parameters. A parameter whose `per_destination` is false can be set only for the stream.
             */
            parameters?: {
                [key: string]: boolean | number | string | {
                    [key: string]: unknown;
                }[];
            };
            /**
             * Row Rules
             * @description Row rules for this destination alone: of what the stream's own rules let pass, its copy and its changes.
             */
            row_rules?: components["schemas"]["ScopedRules"][];
        };
        /**
         * DestinationSample
         * @description One destination in a sample.
         */
        DestinationSample: {
            /** Destination Id */
            destination_id: string;
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for all of it, as the stream's resource has it. Null: the sample is of the past. */
            state: components["schemas"]["ShownState"] | null;
            /**
             * Lcrs Per Second
             * @description LCRs that its appliers apply. Null: the rate of one of them is unknown, as in its first second.
             */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            latency: components["schemas"]["LatencySample"];
            lag: components["schemas"]["Lag"];
            /** @description Null: it has no backlog, as a stream's only destination. The source keeps WAL for it. */
            backlog: components["schemas"]["Backlog"] | null;
            /**
             * Error Queue Transactions
             * @description Null: unknown, as where nothing applies now.
             */
            error_queue_transactions: number | null;
            /**
             * Error Queue Oldest At
             * @description When the oldest of them was parked. Null: there is none, or it is not known yet.
             */
            error_queue_oldest_at: string | null;
            /**
             * Parks Since
             * @description Since when it has applied nothing and parked every transaction that came. Null: it does not.
             */
            parks_since: string | null;
            /**
             * Stalled Since
             * @description Since when it has applied nothing though changes wait for it. Null: for less than 15 s, or not at all.
             */
            stalled_since: string | null;
        };
        /**
         * DestinationSummary
         * @description One of a stream's destinations, each with a state of its own.
         */
        DestinationSummary: {
            /**
             * Id
             * @description Unique in its stream.
             */
            id: string;
            database: components["schemas"]["DatabaseRef"];
            /** @description The engine that applies. */
            engine: components["schemas"]["EngineRef"];
            /** @description combined or propagation. */
            mode: components["schemas"]["StreamMode"];
            desired_status: components["schemas"]["DesiredStatus"];
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for what it does, in the console and on the command line: from its status, its phase and the two fields `parks_since` and `stalled_since`. */
            state: components["schemas"]["ShownState"];
            error: components["schemas"]["StreamError"] | null;
            /** Retry At */
            retry_at: string | null;
            /** Lcrs Per Second */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            latency: components["schemas"]["LatencySample"];
            lag: components["schemas"]["Lag"];
            /** @description Null: it has no backlog, as a stream's only destination. The source keeps WAL for it. */
            backlog: components["schemas"]["Backlog"] | null;
            /** Error Queue Transactions */
            error_queue_transactions: number | null;
            /**
             * Error Queue Oldest At
             * @description When the oldest of them was parked. Null: there is none, or it is not known yet.
             */
            error_queue_oldest_at: string | null;
            /**
             * Parks Since
             * @description Since when it has applied nothing and parked every transaction that came. Null: it does not.
             */
            parks_since: string | null;
            /**
             * Stalled Since
             * @description Since when it has applied nothing though changes wait for it. Null: for less than 15 s, or not at all.
             */
            stalled_since: string | null;
            /**
             * Retrying Transactions
             * @description Transactions that wait for a retry by an error policy.
             * @default 0
             */
            retrying_transactions: number;
            /** @description The first of their retries. */
            next_retry: components["schemas"]["TransactionRetry"] | null;
            /**
             * Rows Copied
             * @description Rows of the initial copy. Null when there was none.
             */
            rows_copied: number | null;
            /** Rows To Copy */
            rows_to_copy: number | null;
            /**
             * Actions
             * @description Actions possible now on this destination alone: start, stop, retry, drop. A stream's last destination cannot be dropped.
             */
            actions: string[];
        };
        /** DestinationTableName */
        DestinationTableName: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
        };
        /** DestinationUpdate */
        DestinationUpdate: {
            /**
             * Parameters
             * @description All overrides. Omitted parameters revert to the stream's values. Null: all stay as they are.
             */
            parameters?: {
                [key: string]: boolean | number | string | {
                    [key: string]: unknown;
                }[];
            } | null;
            /**
             * Row Rules
             * @description All rules of its own. They take effect at one position; rows that it has stay as they are. Null: they stay as they are.
             */
            row_rules?: components["schemas"]["ScopedRules"][] | null;
            /**
             * Accept
             * @description The consents of checks that are accepted, as the preflight names them; or a check's id alone, to accept whatever that check says. Only admins may accept `carried_code`.
             */
            accept?: string[];
        };
        /** DropColumn */
        DropColumn: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "drop_column";
            /**
             * Column
             * @description Its name as the steps before this one have left it.
             * @example email
             */
            column: string;
        };
        /** DryRun */
        DryRun: {
            /**
             * Succeeds
             * @description Whether the transaction would be applied, were it executed now.
             */
            succeeds: boolean;
            /**
             * Code
             * @description Null if it succeeds, like all that follow.
             */
            code: string | null;
            /** Sqlstate */
            sqlstate: string | null;
            /** Table */
            table: string | null;
            /**
             * Message
             * @description Why the destination refuses it, with the row's key.
             */
            message: string | null;
            /** Title */
            title: string | null;
            /**
             * Cure
             * @description What most likely helps.
             */
            cure: string | null;
            /**
             * Changes
             * @description How many it has. Null: the engine's version does not tell.
             */
            changes: number | null;
            /**
             * Edited
             * @description How many changes were tried with other values.
             */
            edited: number;
            /**
             * Left Out
             * @description How many changes were not tried.
             */
            left_out: number;
            /**
             * Settled
             * @description How many changes the destination refuses, and statement handlers of `error` settle in their places. 0, too, where the engine's version does not tell.
             */
            settled: number;
            /**
             * Failed Change
             * @description The number of the change that the destination refuses. Null: it succeeds, or fails at the commit, or the engine's version does not tell.
             */
            failed_change: number | null;
        };
        /**
         * EdgeKind
         * @enum {string}
         */
        EdgeKind: "WAL" | "LCR" | "PROPAGATION" | "SQL";
        /** EmailChannelCreate */
        EmailChannelCreate: {
            /** Name */
            name: string;
            /**
             * Enabled
             * @default true
             */
            enabled: boolean;
            /**
             * @description Less severe alerts are not sent.
             * @default warning
             */
            min_severity: components["schemas"]["AlertSeverity"];
            /**
             * Send Resolved
             * @description Also send a notice when an alert is resolved.
             * @default true
             */
            send_resolved: boolean;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "email";
            settings: components["schemas"]["EmailSettings"];
            /**
             * Secret
             * @description The user's password. Never shown again.
             * @default
             */
            secret: string;
        };
        /** EmailSettings */
        EmailSettings: {
            /** Host */
            host: string;
            /**
             * Port
             * @default 587
             */
            port: number;
            /**
             * @description STARTTLS usually on 587, TLS on 465.
             * @default starttls
             */
            security: components["schemas"]["MailSecurity"];
            /**
             * User
             * @description Empty: the server is not given any credentials.
             * @default
             */
            user: string;
            /**
             * Sender
             * @description The From address.
             */
            sender: string;
            /** Recipients */
            recipients: string[];
            /**
             * Ca Certificate
             * @description Certificates (PEM) to trust instead of the system's.
             * @default
             */
            ca_certificate: string;
        };
        /** Engine */
        Engine: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Url */
            url: string;
            state: components["schemas"]["EngineState"];
            /**
             * Message
             * @description Why it is not ONLINE.
             */
            message: string | null;
            /** Version */
            version: string | null;
            /** Hostname */
            hostname: string | null;
            /** Pid */
            pid: number | null;
            /** Started At */
            started_at: string | null;
            /** Last Seen At */
            last_seen_at: string | null;
            /** Resident Bytes */
            resident_bytes: number | null;
            /**
             * Cpu Percent
             * @description Percent of one core, over the last interval.
             */
            cpu_percent: number | null;
            /** Desired Revision */
            desired_revision: number;
            /**
             * Acknowledged Revision
             * @description The revision that the engine has on its disk.
             */
            acknowledged_revision: number | null;
            /** @description Null: none yet, or an engine of a version without propagation. */
            identity: components["schemas"]["Identity"] | null;
            /**
             * Propagation Address
             * @description host:port where other engines reach it. Null: no engine can, so no stream can apply here what another engine captures.
             */
            propagation_address: string | null;
            /**
             * Propagation Address Set
             * @description False: it is the address where the engine listens.
             */
            propagation_address_set: boolean;
            /**
             * Wal Archives
             * @description Archives of sources' WAL that its host offers, by their names: values for a mined stream's parameter wal_archive.
             */
            wal_archives: string[];
            /** Streams */
            streams: string[];
            /**
             * Unknown Streams
             * @description They keep running until they are dropped with :drop-stream.
             */
            unknown_streams: components["schemas"]["UnknownStream"][];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Etag
             * @description Send as If-Match when updating.
             */
            etag: string;
        };
        /** EngineEnrol */
        EngineEnrol: {
            /** Token */
            token: string;
            /** Name */
            name: string;
            /** Url */
            url: string;
            /**
             * Control Token
             * @description The content of the engine's --token-file: printable ASCII without spaces.
             */
            control_token: string;
        };
        /**
         * EngineEvent
         * @description SSE event `engine`: its state changed.
         */
        EngineEvent: {
            /** Engine Id */
            engine_id: string;
            state: components["schemas"]["EngineState"];
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /** EngineRef */
        EngineRef: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            state: components["schemas"]["EngineState"];
        };
        /**
         * EngineState
         * @description REFUSED: it answers, but rejects our token or our API version.
         * @enum {string}
         */
        EngineState: "UNKNOWN" | "ONLINE" | "UNREACHABLE" | "REFUSED";
        /** EngineUpdate */
        EngineUpdate: {
            /**
             * Propagation Address
             * @description host:port where other engines reach it; null: the address where it listens.
             */
            propagation_address: string | null;
        };
        /** Enrolment */
        Enrolment: {
            /** Id */
            id: string;
            /**
             * Token
             * @description Valid for one enrolment. Shown only once: only its hash is stored.
             */
            token: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
        };
        /** EnrolmentCreate */
        EnrolmentCreate: {
            /**
             * Expires In Minutes
             * @default 60
             */
            expires_in_minutes: number;
        };
        /** ErrorCause */
        ErrorCause: {
            /**
             * Cause
             * @description Names it in requests.
             */
            cause: string;
            kind: components["schemas"]["CauseKind"];
            /** Title */
            title: string;
            /**
             * Cure
             * @description What most likely helps.
             */
            cure: string;
            /** Code */
            code: string;
            /** Sqlstate */
            sqlstate: string | null;
            /**
             * Table
             * @description Null if the message names none.
             */
            table: string | null;
            /**
             * Object
             * @description The constraint, column or type that the message names, if it names one. Null for viewers.
             */
            object: string | null;
            /** Transactions */
            transactions: number;
            /**
             * Oldest
             * Format: date-time
             * @description When the first of them was parked.
             */
            oldest: string;
        };
        /** ErrorExecution */
        ErrorExecution: {
            /**
             * Error Id
             * @description The transaction to execute, with those behind it. Null: several.
             */
            error_id: number | null;
            /**
             * Cause
             * @description The cause whose transactions are executed, with those behind them. Null: one transaction, or the whole queue.
             */
            cause: string | null;
            /**
             * Role
             * @description The destination's role as which it applies. Null: the engine's own.
             */
            role: string | null;
            state: components["schemas"]["ExecutionState"];
            /**
             * Executed
             * @description Transactions that were applied and have left the queue.
             */
            executed: number;
            /**
             * Total
             * @description Transactions to execute when it began.
             */
            total: number;
            /**
             * Failed Again
             * @description Transactions that failed again and have not left the queue since. The rest of `total` has left it, waits behind these, or has not been tried yet. Null: the engine's version does not tell.
             */
            failed_again: number | null;
            /**
             * Failures
             * @description Failures of the first 20 that failed again, as far as they are in the queue.
             */
            failures: components["schemas"]["ExecutionFailure"][];
            /**
             * Left Out
             * @description Transactions of `executed` of which nothing was applied, because all their changes are left out.
             */
            left_out: number;
            /**
             * Left Out Ids
             * @description The first 20 of them.
             */
            left_out_ids: number[];
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            /** Finished At */
            finished_at: string | null;
            /**
             * Message
             * @description Why it stopped: FAILED only. Without values of rows for viewers.
             */
            message: string | null;
        };
        /**
         * ErrorPolicy
         * @description The fate of a transaction that fails permanently with such an error.
         */
        ErrorPolicy: {
            /**
             * Error
             * @description An SQLSTATE, the first two characters of one (its class), or one of the codes apply_conflict, apply_failed, initial_copy_inconsistent. Omitted: any error.
             * @example 23505
             */
            error?: string;
            /**
             * Schema
             * @description With `table`.
             * @example public
             */
            schema?: string;
            /**
             * Table
             * @description The table whose change failed, by its exact name in the stream. Omitted: any.
             * @example orders
             */
            table?: string;
            action: components["schemas"]["PolicyAction"];
            /**
             * Times
             * @description How often `retry` tries again before `after_retries` comes.
             */
            times?: number;
            /**
             * Delay Seconds
             * @description Seconds to wait before each retry.
             */
            delay_seconds?: number;
            /** @description `stop`, `park` or `skip`, for when the last retry fails, too. */
            after_retries?: components["schemas"]["PolicyAction"];
        };
        /**
         * ErrorSide
         * @description Where the trouble is.
         * @enum {string}
         */
        ErrorSide: "source" | "destination" | "link" | "engine";
        /**
         * Evidence
         * @description One figure that the finding rests on.
         */
        Evidence: {
            /**
             * Statistic
             * @description Its name, as in the tables, or what was read at a database.
             */
            statistic: string;
            /**
             * Subject
             * @description Its subject: a thread's id in live samples, a table, a session, a setting.
             */
            subject: string;
            /** Value */
            value: string | number | null;
            /** Unit */
            unit: string;
            /**
             * Threshold
             * @description The threshold that it is compared with. Null: it is a fact, not a figure.
             */
            threshold: string | number | null;
            /**
             * Since
             * @description Since when it has been past its threshold, as far back as the samples of the run go.
             */
            since: string | null;
            /**
             * Series
             * @description Where live samples and history have it, for its chart: `<thread>.<field>.<name>`, such as server-1.time_percent.execute, or `<field>` of the sample itself.
             */
            series: string | null;
        };
        /**
         * Execution
         * @description How parked transactions are executed or tried.
         */
        Execution: {
            /**
             * Role
             * @description A role of the destination, exactly as PostgreSQL has it: the changes are applied with its privileges and policies (`SET LOCAL ROLE`), as are the triggers that they fire. The engine's user has to be a member of it. Null: as the engine's user.
             * @example clerk
             */
            role?: string | null;
        };
        /** ExecutionAccepted */
        ExecutionAccepted: {
            /**
             * Accepted
             * @default true
             */
            accepted: boolean;
            /** @description RUNNING: it continues; the queue's `execution` shows its progress. FAILED: some were applied, then one failed again. An execution of which nothing was applied is refused instead. */
            state: components["schemas"]["ExecutionState"];
            /**
             * Executed
             * @description Transactions that were applied and have left the queue: FAILED only.
             */
            executed: number | null;
            /**
             * Failed Again
             * @description Transactions that failed again: FAILED only. Null, too, where the engine's version does not tell.
             */
            failed_again: number | null;
            /**
             * Message
             * @description Why the first of them failed: FAILED only.
             */
            message: string | null;
        };
        /** ExecutionFailure */
        ExecutionFailure: {
            /** Error Id */
            error_id: number;
            /** Code */
            code: string;
            /** Sqlstate */
            sqlstate: string | null;
            /**
             * Message
             * @description Without values of rows for viewers.
             */
            message: string | null;
        };
        /**
         * ExecutionState
         * @description The state of an execution of parked transactions.
         * @enum {string}
         */
        ExecutionState: "RUNNING" | "DONE" | "FAILED";
        /**
         * ExportFormat
         * @description The format of an exported conflict log, and of changes that a search has found.
         * @enum {string}
         */
        ExportFormat: "ndjson" | "csv";
        /**
         * Fact
         * @description One line from a database's own catalogue.
         */
        Fact: {
            /** Database */
            database: string;
            /** Side */
            side: string;
            /**
             * Name
             * @example synchronous_commit
             * @example walsender wait
             */
            name: string;
            /** Value */
            value: string;
        };
        /**
         * FactSheet
         * @description Facts read at one database for this run. A database that does not answer is a fact itself.
         */
        FactSheet: {
            /** Database */
            database: string;
            /** Side */
            side: string;
            /** Queried At */
            queried_at: string | null;
            /** Error */
            error: string | null;
            /** Facts */
            facts: components["schemas"]["Fact"][];
        };
        /**
         * FieldProblem
         * @description One part of a request that is wrong, or one check that failed.
         */
        FieldProblem: {
            /**
             * Pointer
             * @description JSON pointer into the request, or empty when none applies.
             */
            pointer: string;
            /** Code */
            code: string;
            /** Message */
            message: string;
            /**
             * Cure
             * @default null
             */
            cure: string | null;
            /**
             * Sql
             * @default null
             */
            sql: string | null;
        };
        /**
         * FillingLimit
         * @description The settings and parameters that bound what grows, by their names.
         * @enum {string}
         */
        FillingLimit: "max_slot_wal_keep_size" | "queue_spill_limit_mb" | "staging_limit_mb";
        /** Finding */
        Finding: {
            /**
             * Id
             * @description Unique in its run, and the same in the next run for the same trouble.
             */
            id: string;
            /**
             * Rank
             * @description 1 is the most important of the run.
             */
            rank: number;
            /** Path Id */
            path_id: string;
            /** Stream Id */
            stream_id: string;
            /** Component Id */
            component_id: string | null;
            code: components["schemas"]["FindingCode"];
            severity: components["schemas"]["FindingSeverity"];
            /**
             * Is Cause
             * @description It causes the named bottleneck.
             */
            is_cause: boolean;
            /** Title */
            title: string;
            /** Explanation */
            explanation: string;
            /** Evidence */
            evidence: components["schemas"]["Evidence"][];
            /**
             * Expected Gain
             * @description In words.
             */
            expected_gain: string | null;
            /**
             * Gain Percent
             * @description How much faster the path may become, estimated from the share of time that the cause takes.
             */
            gain_percent: number | null;
            /**
             * Cures
             * @description The best one first.
             */
            cures: components["schemas"]["Cure"][];
        };
        /**
         * FindingCode
         * @description The catalogue explains each (advisor/findings/catalogue.py, docs/reference/findings.md). UNKNOWN: a finding of a
         *     stored run that another version took.
         * @enum {string}
         */
        FindingCode: "aborted" | "apply_commit_order" | "apply_coordinator_cpu" | "apply_data_layer_missing" | "apply_data_layer_off" | "apply_dependency_chain" | "apply_disk_reads" | "apply_lock_contention" | "apply_missing_index" | "apply_network" | "apply_parallelism" | "apply_reader_cpu" | "apply_slow_flush" | "apply_small_groups" | "apply_spill" | "apply_standby" | "apply_standstill" | "apply_tiny_transactions" | "apply_trigger" | "archive_lags" | "capture_cpu" | "capture_decode" | "capture_network" | "capture_shipment" | "destination_down" | "engine_down" | "engine_trouble" | "full_backlog" | "full_backlog_elsewhere" | "link_down" | "network_limit" | "network_window" | "parking" | "receiver_cpu" | "sender_cpu" | "source_down" | "source_idle" | "staging_full" | "start_blocked" | "wal_images" | "unknown";
        /**
         * FindingSeverity
         * @enum {string}
         */
        FindingSeverity: "critical" | "warning" | "advice" | "information";
        /**
         * HandlerAction
         * @enum {string}
         */
        HandlerAction: "error" | "discard" | "overwrite" | "maximum" | "minimum" | "latest" | "priority" | "delta" | "append" | "merge" | "expression";
        /**
         * HandlerMoment
         * @enum {string}
         */
        HandlerMoment: "instead" | "after" | "precommit" | "error";
        /** Health */
        Health: {
            level: components["schemas"]["HealthLevel"];
            /**
             * Reason
             * @description In words.
             */
            reason: string;
        };
        /**
         * HealthLevel
         * @description Only OK is healthy. STOPPED is intentional, but changes do not arrive.
         * @enum {string}
         */
        HealthLevel: "ok" | "stopped" | "warning" | "error" | "unknown";
        /** Healthz */
        Healthz: {
            /**
             * Status
             * @constant
             */
            status: "ok";
            /** Version */
            version: string;
        };
        /** History */
        History: {
            /** Tiers */
            tiers: components["schemas"]["HistoryTier"][];
        };
        /** HistorySamples */
        HistorySamples: {
            /** Stream Id */
            stream_id: string;
            resolution: components["schemas"]["Resolution"];
            /**
             * Samples
             * @description The samples as they were recorded, oldest first; those of a minute or an hour contain its mean.
             */
            samples: components["schemas"]["Sample"][];
        };
        /** HistorySeries */
        HistorySeries: {
            /**
             * Statistic
             * @description Its name, such as components.server-1.time_percent.busy.
             */
            statistic: string;
            /**
             * Unit
             * @description Empty when it has none.
             */
            unit: string;
            /**
             * Values
             * @description The mean over each step; one for each point.
             */
            values: (number | null)[];
            /**
             * Highs
             * @description The highest within each step.
             */
            highs: (number | null)[];
        };
        /** HistoryStatistics */
        HistoryStatistics: {
            /** Stream Id */
            stream_id: string;
            /**
             * Sampled At
             * @description When the sample was taken that they are read from; null when there is none.
             */
            sampled_at: string | null;
            /** Statistics */
            statistics: components["schemas"]["StatisticName"][];
        };
        /** HistoryTier */
        HistoryTier: {
            resolution: components["schemas"]["Resolution"];
            /** Kept Seconds */
            kept_seconds: number;
            /**
             * Partition Seconds
             * @description The span that is dropped at a time.
             */
            partition_seconds: number;
            /**
             * Oldest
             * @description The start of the oldest partition.
             */
            oldest: string | null;
            /**
             * Bytes
             * @description On the store's disk, indexes included.
             */
            bytes: number;
        };
        /**
         * Identity
         * @description The engine's identity towards other engines, certified by the control plane's own authority.
         */
        Identity: {
            /**
             * Name
             * @description The name in the certificate, which other engines expect.
             */
            name: string;
            /**
             * Fingerprint
             * @description SHA-256 of the certificate, in hex.
             */
            fingerprint: string;
            /**
             * Not After
             * Format: date-time
             * @description End of validity; renewed when less than a third of it is left.
             */
            not_after: string;
            /**
             * Listen
             * @description host:port where it accepts propagations. Null: it was started without one.
             */
            listen: string | null;
        };
        /**
         * InEffect
         * @description From where on a destination is replicated to by the stream's present rules and parameters.
         */
        InEffect: {
            /**
             * Under Way
             * @description The last change of the stream, or its start, is not in effect here yet. False while the stream, or the destination, is stopped or aborted: the change takes effect with the next start.
             */
            under_way: boolean;
            /**
             * From
             * @description A position: changes that commit at the source there or later are judged and applied by the present rules and parameters; parameters that are live take effect at once. Null while that is under way, and where nothing has run by them yet. A stop keeps it.
             */
            from: string | null;
            /**
             * Since
             * @description When that began, by the engine's clock.
             */
            since: string | null;
        };
        /** Instantiation */
        Instantiation: {
            /** Started At */
            started_at: string | null;
            /** Finished At */
            finished_at: string | null;
            /** @description indexes: all rows are there; indexes, constraints and foreign keys follow. */
            stage: components["schemas"]["CopyStage"];
            /** Rows Estimated */
            rows_estimated: number | null;
            /** Rows Copied */
            rows_copied: number;
            /** Bytes Copied */
            bytes_copied: number;
            /**
             * Indexes Total
             * @description Indexes of all tables.
             */
            indexes_total: number;
            /** Indexes Built */
            indexes_built: number;
            /**
             * Rows Per Second
             * @description The rate of the tables that are being copied now; null when none is.
             */
            rows_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            /**
             * Rows Seconds Left
             * @description Until all rows are copied; null while this cannot be estimated.
             */
            rows_seconds_left: number | null;
            /**
             * Index Bytes Left
             * @description Bytes of rows to read for the keys, constraints, indexes and foreign keys that are missing: a table's bytes once for each. Of tables whose rows are not all there it is an estimate; null without one.
             */
            index_bytes_left: number | null;
            /**
             * Index Bytes Per Second
             * @description Measured in this copy while indexes were built; null before the first one is finished, and while the copy does not run.
             */
            index_bytes_per_second: number | null;
            /**
             * Indexes Seconds Left
             * @description index_bytes_left at that rate, an estimate; null where one of both is. An index that is being built counts whole.
             */
            indexes_seconds_left: number | null;
            /**
             * Seconds Left
             * @description Until the copy is finished: rows, then indexes. Null where one is.
             */
            seconds_left: number | null;
            /**
             * Curve
             * @description Rows over time, oldest first, as far as the control plane has seen the copy; empty once it is finished.
             */
            curve: components["schemas"]["CopyPoint"][];
            /** Tables */
            tables: components["schemas"]["TableProgress"][];
        };
        /** JudgedChange */
        JudgedChange: {
            /** Operation */
            operation: string;
            /**
             * Old
             * @description The row before, in the table's order of columns; values longer than 200 bytes are cut. Of a stream's change, the columns that came; null: none did.
             */
            old: {
                [key: string]: string | null;
            } | null;
            /**
             * New
             * @description The row after, likewise.
             */
            new: {
                [key: string]: string | null;
            } | null;
            /** Rules */
            rules: components["schemas"]["RuleOutcome"][];
            /**
             * Verdict
             * @description PASSED, DROPPED, BECOMES INSERT, BECOMES DELETE, or STOPS THE STREAM.
             */
            verdict: string;
            /** @description What stops the stream. */
            error: components["schemas"]["RuleStop"] | null;
            /**
             * Origin
             * @description REQUEST, STREAM (`recent`) or TABLE (`sample`).
             */
            origin: string;
            /**
             * Old Not Sent
             * @description Columns of the row before whose values the source did not send, where it is a stream's change. What it sends depends on the table's replica identity.
             */
            old_not_sent: string[];
            /**
             * New Not Sent
             * @description The same for the row after: long values that an UPDATE left as they were (TOAST).
             */
            new_not_sent: string[];
            /**
             * Tag
             * @description The replication origin of the change's transaction. Null: none, or unknown.
             */
            tag: string | null;
            /**
             * Commit Time
             * @description When its transaction committed. Null: it has no commit time, or it has not ended yet.
             */
            commit_time: string | null;
            /**
             * Hidden
             * @description Columns that the stream masks or drops, where it is a stream's change. Rules judge their values, and nobody is shown them.
             */
            hidden: string[];
        };
        /**
         * KeepColumns
         * @description Drops all other columns, also those that the table gets later.
         */
        KeepColumns: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "keep_columns";
            /**
             * Columns
             * @description Their names as the steps before this one have left them.
             */
            columns: string[];
        };
        /**
         * KeptStream
         * @description The WAL of the source that is kept for a stream.
         */
        KeptStream: {
            /** Stream Id */
            stream_id: string;
            /** Stream Name */
            stream_name: string;
            /**
             * Kept From
             * @description The LSN from which can be searched.
             */
            kept_from: string;
            /**
             * Kept From Time
             * @description The time of a commit there or earlier. It is null where it is not known.
             */
            kept_from_time: string | null;
            /** Kept Until */
            kept_until: string;
            /** Kept Bytes */
            kept_bytes: number;
        };
        /**
         * KindChange
         * @description A change of `capture_kind` that is under way. The former kind captures until it is made.
         */
        KindChange: {
            to: components["schemas"]["CaptureKind"];
            /**
             * Position
             * @description Changes that commit at the source there or later will be captured by the new kind. Null: it is being prepared, which waits for transactions that run at the source.
             */
            position: string | null;
            /**
             * Waits For
             * @description The ids of destinations that do not have everything from before the position yet. The kind changes once there is none.
             */
            waits_for: string[];
        };
        /**
         * Lab
         * @description The demo's load, and the causes that can slow its stream down.
         */
        Lab: {
            /** Available */
            available: boolean;
            /**
             * Why
             * @description Why it is not available. Null if it is.
             */
            why: string | null;
            /** Cure */
            cure: string | null;
            stream: components["schemas"]["LabStream"] | null;
            load: components["schemas"]["LabLoad"] | null;
            /**
             * Causes
             * @description Empty if the lab is not available. At most one is on.
             */
            causes: components["schemas"]["LabCause"][];
        };
        /** LabCause */
        LabCause: {
            state: components["schemas"]["LabState"];
            /**
             * Begun By
             * @description Null while it is off.
             */
            begun_by: string | null;
            /** In Effect At */
            in_effect_at: string | null;
            /**
             * Until
             * @description When it ends by itself. Null while it is off.
             */
            until: string | null;
            /**
             * Failure
             * @description Why the last attempt to begin or to end it failed; it is retried.
             */
            failure: string | null;
            name: components["schemas"]["CauseName"];
            /** Title */
            title: string;
            /**
             * Effect
             * @description Its effect, in a sentence.
             */
            effect: string;
            /**
             * Sql
             * @description The SQL that begins it at the destination.
             */
            sql: string;
            /**
             * End Sql
             * @description The SQL that ends it there.
             */
            end_sql: string;
            /**
             * Refused
             * @description Why it cannot begin now. Null if it can.
             */
            refused: string | null;
            /** @description The delay of the slow network. Null for the other causes. */
            delay: components["schemas"]["LabDelay"] | null;
        };
        /** LabCauseStart */
        LabCauseStart: {
            /**
             * Delay Ms
             * @description The delay of the slow network, each way; 50 if omitted.
             */
            delay_ms?: number | null;
        };
        /**
         * LabDelay
         * @description In milliseconds, each way: a round trip takes twice as long.
         */
        LabDelay: {
            /**
             * Ms
             * @description The requested delay, or the last one; otherwise the usual one.
             */
            ms: number;
            /** Usual Ms */
            usual_ms: number;
            /** Ms Max */
            ms_max: number;
        };
        /** LabLoad */
        LabLoad: {
            state: components["schemas"]["LabState"];
            /**
             * Begun By
             * @description Null while it is off.
             */
            begun_by: string | null;
            /** In Effect At */
            in_effect_at: string | null;
            /**
             * Until
             * @description When it ends by itself. Null while it is off.
             */
            until: string | null;
            /**
             * Failure
             * @description Why the last attempt to begin or to end it failed; it is retried.
             */
            failure: string | null;
            /**
             * Rate
             * @description The requested rate, in transactions per second. The machine may manage fewer.
             */
            rate: number;
            /**
             * Usual Rate
             * @description The usual rate, restored at the end.
             */
            usual_rate: number;
            /** Rate Max */
            rate_max: number;
        };
        /** LabLoadUpdate */
        LabLoadUpdate: {
            /**
             * Rate
             * @description Transactions a second.
             */
            rate: number;
        };
        /**
         * LabState
         * @description STARTING and ENDING: the collector is working on it. GONE: it was cured at the database, but has not ended
         *     yet.
         * @enum {string}
         */
        LabState: "off" | "starting" | "on" | "gone" | "ending";
        /** LabStream */
        LabStream: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Source
             * @description The database's name.
             */
            source: string;
            /** Destination */
            destination: string;
        };
        /**
         * Lag
         * @description The replication lag: WAL that the source has written and a destination has not applied, even while nothing runs.
         *     Of several destinations, the stream shows the largest amount.
         */
        Lag: {
            /**
             * Bytes
             * @description WAL between the source's end and what is applied; at several destinations, at the last of them.
             */
            bytes: number | null;
            /**
             * Seconds
             * @description Time to catch up at the present rate.
             */
            seconds: number | null;
            /**
             * Age Seconds
             * @description How long ago the source wrote the oldest of it. Null: before anybody looked.
             */
            age_seconds: number | null;
            /**
             * Growth Bytes Per Second
             * @description Over the last minute, since the last stop, pause or start; negative while it shrinks. Null: not observed long enough.
             */
            growth_bytes_per_second: number | null;
            /**
             * Seconds To Full
             * @description At the present growth: until the first of its limits is reached. Of a stream: max_slot_wal_keep_size, which takes its slot, and the limits of its destinations. Of a destination: queue_spill_limit_mb of its backlog on disk and, with log mining, staging_limit_mb of the stream's staged WAL once more than half of that is used. Null: no limit, no growth that was steady over the last three minutes, less than 1 MiB waits (staged WAL apart), more than 30 days are left, or it is full.
             */
            seconds_to_full: number | null;
            /** @description The limit that is reached then. Null where `seconds_to_full` is. */
            reached_limit: components["schemas"]["FillingLimit"] | null;
            /**
             * Applied
             * @description Everything that committed before it is applied.
             */
            applied: string | null;
            /**
             * Source Read At
             * @description When the source itself last said where its WAL ends. Null: it never has.
             */
            source_read_at: string | null;
        };
        /** LastChange */
        LastChange: {
            /**
             * At Source
             * Format: date-time
             * @description When it was committed there, by the source's clock.
             */
            at_source: string;
            /**
             * At Destination
             * Format: date-time
             * @description When it was committed there, by the engine's clock.
             */
            at_destination: string;
        };
        /** LastLatency */
        LastLatency: {
            /** P50 Ms */
            p50_ms: number;
            /** P99 Ms */
            p99_ms: number;
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /**
         * LatencySample
         * @description Latency from the commit at the source to the commit at the destination, of the interval's transactions and
         *     heartbeats. A stream with several destinations shows that of the slowest, the one with the highest p99.
         */
        LatencySample: {
            /** P50 Ms */
            p50_ms: number | null;
            /** P99 Ms */
            p99_ms: number | null;
            /** Transactions */
            transactions: number | null;
            /** @description The latency of the newest interval in which any came: an idle stream has its heartbeats. Null with `at_least`. */
            last: components["schemas"]["LastLatency"] | null;
            /**
             * At Least
             * @description None came in the interval though changes wait, and p99_ms is the age of the oldest of them: the latency is at least so long. p50_ms is null.
             * @default false
             */
            at_least: boolean;
        };
        /**
         * LiveAnalysis
         * @description An analysis that is not kept.
         */
        LiveAnalysis: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Live
             * @description False: Redis cannot be reached, there are no samples.
             */
            live: boolean;
            analysis: components["schemas"]["Analysis"];
            /** Paths */
            paths: components["schemas"]["RunPath"][];
            /** Findings Ranked */
            findings_ranked: components["schemas"]["Finding"][];
        };
        /** LogChannelCreate */
        LogChannelCreate: {
            /** Name */
            name: string;
            /**
             * Enabled
             * @default true
             */
            enabled: boolean;
            /**
             * @description Less severe alerts are not sent.
             * @default warning
             */
            min_severity: components["schemas"]["AlertSeverity"];
            /**
             * Send Resolved
             * @description Also send a notice when an alert is resolved.
             * @default true
             */
            send_resolved: boolean;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "log";
            settings?: components["schemas"]["LogSettings"];
            /**
             * Secret
             * @default
             * @constant
             */
            secret: "";
        };
        /**
         * LogSettings
         * @description This channel has no settings: notices go to the log of the process that sends them.
         */
        LogSettings: Record<string, never>;
        /**
         * LoggedAction
         * @enum {string}
         */
        LoggedAction: "discard" | "overwrite" | "skip" | "park" | "maximum" | "minimum" | "latest" | "priority" | "delta" | "append" | "merge" | "expression" | "combined" | "statement";
        /** LoggedChange */
        LoggedChange: {
            /** Id */
            id: number;
            /**
             * Logged At
             * Format: date-time
             */
            logged_at: string;
            /** Commit Lsn */
            commit_lsn: string;
            /**
             * Committed At
             * Format: date-time
             * @description When the source committed the transaction.
             */
            committed_at: string;
            /** Xid */
            xid: number;
            /**
             * Change
             * @description In the transaction, from 1.
             */
            change: number;
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            operation: components["schemas"]["ParkedOperation"];
            /** @description `error`: the destination refused the change, but it is no conflict. */
            kind: components["schemas"]["LoggedKind"];
            /** Sqlstate */
            sqlstate: string | null;
            /** @description `skip`: error_policies had the change left out. `park`: its transaction was parked. `combined`: several handlers decided, each about a group of columns. `statement`: statements of statement_handlers were executed in its place. */
            action: components["schemas"]["LoggedAction"];
            /**
             * Message
             * @description Why it failed. Null for viewers, because it quotes values of rows.
             */
            message: string | null;
        };
        /** LoggedChanges */
        LoggedChanges: {
            /** Conflicts */
            conflicts: components["schemas"]["LoggedChange"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * LoggedKind
         * @description ConflictKind, and what is none.
         * @enum {string}
         */
        LoggedKind: "insert_exists" | "update_exists" | "update_missing" | "delete_missing" | "foreign_key_missing" | "update_origin_differs" | "delete_origin_differs" | "multiple_unique_conflicts" | "error";
        /**
         * MailSecurity
         * @enum {string}
         */
        MailSecurity: "starttls" | "tls" | "plain";
        /**
         * Marker
         * @description A transaction without changes that takes the path of every commit and is recorded at every stage.
         */
        Marker: {
            /**
             * Id
             * @description Null for a heartbeat.
             */
            id: string | null;
            kind: components["schemas"]["MarkerKind"];
            /** Label */
            label: string;
            state: components["schemas"]["MarkerState"];
            /**
             * Placed At
             * Format: date-time
             */
            placed_at: string;
            /** Commit Lsn */
            commit_lsn: string | null;
            /** Xid */
            xid: number | null;
            /**
             * Committed At
             * @description At the source, by its clock.
             */
            committed_at: string | null;
            /**
             * Failure
             * @description The source's message; viewers see only that there is one.
             */
            failure: string | null;
            /**
             * Latency Ms
             * @description Until the last commit at a destination; null until it has arrived.
             */
            latency_ms: number | null;
            /**
             * Hops
             * @description In the path's order.
             */
            hops: components["schemas"]["MarkerHop"][];
        };
        /** MarkerCreate */
        MarkerCreate: {
            /**
             * Label
             * @description Your name for it.
             * @default
             */
            label: string;
        };
        /**
         * MarkerHop
         * @description One stage of the path. Times come from the engine that recorded them: on several hosts, differences between their
         *     clocks show.
         */
        MarkerHop: {
            /**
             * Stage
             * @description CAPTURE: read. ENQUEUE. SEND: packed into a batch. RECEIVE: in the other engine's queue. DEQUEUE. DISPATCH: the coordinator took it. COMMIT: everything before it has committed at the destination.
             */
            stage: string;
            /**
             * Component
             * @description CAPTURE, QUEUE, PROPAGATION SENDER, PROPAGATION RECEIVER or APPLY.
             */
            component: string;
            /** Engine Id */
            engine_id: string;
            /**
             * Destination Id
             * @description Its destination, if there are several.
             */
            destination_id: string | null;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Latency Ms
             * @description Since the commit at the source.
             */
            latency_ms: number;
            /**
             * Step Ms
             * @description Since the stage before, on the way to the same destination.
             */
            step_ms: number;
        };
        /**
         * MarkerKind
         * @description HEARTBEAT: placed by the engine, every heartbeat_interval. TRACKED: placed by a user.
         * @enum {string}
         */
        MarkerKind: "HEARTBEAT" | "TRACKED";
        /**
         * MarkerState
         * @description WAITING for the source. PLACED: committed there. CAPTURED: read by the capture. ARRIVED: at every destination.
         *     FAILED: the source could not commit it. UNKNOWN: only a newer engine knows it.
         * @enum {string}
         */
        MarkerState: "WAITING" | "PLACED" | "CAPTURED" | "ARRIVED" | "FAILED" | "UNKNOWN";
        /**
         * MaskColumn
         * @description Replaces every value of a column, so that the original one is nowhere but at the source and in the engine that
         *     captures.
         */
        MaskColumn: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "mask_column";
            /**
             * Column
             * @description Its name as the steps before this one have left it.
             */
            column: string;
            /** @description `null`; `constant`, a value that all rows get; `partial`, which keeps some of the first and last characters of a text, with an asterisk for each of the others. A text that has no others is all asterisks; `hash`, 64 hexadecimal digits or as many as the column holds, by which equal values stay equal: HMAC-SHA256 with the stream's `mask_key`; `digits`, which puts another digit in the place of each, by the whole value and the `mask_key`, and leaves everything else as it is. */
            with: components["schemas"]["MaskWith"];
            /**
             * Value
             * @description The constant, as PostgreSQL writes a value of the column's type. Else null.
             */
            value?: string | null;
            /**
             * Keep First
             * @description Characters that `partial` keeps. Else 0.
             * @default 0
             */
            keep_first: number;
            /**
             * Keep Last
             * @description Characters that `partial` keeps. Else 0.
             * @default 0
             */
            keep_last: number;
        };
        /**
         * MaskWith
         * @enum {string}
         */
        MaskWith: "null" | "constant" | "partial" | "hash" | "digits";
        /**
         * NewIndex
         * @description The index that an SQL cure creates, and that its undo drops.
         */
        NewIndex: {
            /** Schema Name */
            schema_name: string;
            /** Table */
            table: string;
            /** Name */
            name: string;
        };
        /**
         * NodeKind
         * @enum {string}
         */
        NodeKind: "DATABASE" | "CAPTURE" | "QUEUE" | "PROPAGATION SENDER" | "PROPAGATION RECEIVER" | "APPLY";
        /**
         * NoticeEvent
         * @enum {string}
         */
        NoticeEvent: "firing" | "resolved" | "test";
        /**
         * ObservedStatus
         * @description UNKNOWN also while the engine does not answer, whatever it reported last.
         * @enum {string}
         */
        ObservedStatus: "ENABLED" | "DISABLED" | "ABORTED" | "DROPPED" | "UNKNOWN";
        /**
         * OnError
         * @description A rule's policy for changes for which its condition cannot be evaluated.
         * @enum {string}
         */
        OnError: "stop" | "as_true" | "as_false";
        /** OpenedConflict */
        OpenedConflict: {
            /** Id */
            id: number;
            /**
             * Logged At
             * Format: date-time
             */
            logged_at: string;
            /** Commit Lsn */
            commit_lsn: string;
            /**
             * Committed At
             * Format: date-time
             * @description When the source committed the transaction.
             */
            committed_at: string;
            /** Xid */
            xid: number;
            /**
             * Change
             * @description In the transaction, from 1.
             */
            change: number;
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            operation: components["schemas"]["ParkedOperation"];
            /** @description `error`: the destination refused the change, but it is no conflict. */
            kind: components["schemas"]["LoggedKind"];
            /** Sqlstate */
            sqlstate: string | null;
            /** @description `skip`: error_policies had the change left out. `park`: its transaction was parked. `combined`: several handlers decided, each about a group of columns. `statement`: statements of statement_handlers were executed in its place. */
            action: components["schemas"]["LoggedAction"];
            /**
             * Message
             * @description Why it failed. Null for viewers, because it quotes values of rows.
             */
            message: string | null;
            /**
             * Columns
             * @description `now` is the destination's row as it was before the decision: of an insert_exists or update_exists the row that collides, else the one that the change was to change.
             */
            columns: components["schemas"]["ParkedColumn"][];
            /**
             * Rows Found
             * @description 1, or 0 if the destination had no such row.
             */
            rows_found: number;
        };
        /** Operation */
        Operation: {
            /** Id */
            id: string;
            kind: components["schemas"]["OperationKind"];
            target: components["schemas"]["OperationTarget"];
            state: components["schemas"]["OperationState"];
            progress: components["schemas"]["Progress"];
            error: components["schemas"]["OperationError"] | null;
            /**
             * Waiting For
             * @description The cause of its waiting, in words. Null: it does not wait, or has finished.
             */
            waiting_for: string | null;
            /** Requested By */
            requested_by: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Started At
             * @description When the engine received the request.
             */
            started_at: string | null;
            /**
             * Finished At
             * @description When the engine was first seen to have finished it; it is polled once a second.
             */
            finished_at: string | null;
        };
        /**
         * OperationAccepted
         * @description The answer to a request that starts an operation: poll the operation until it has succeeded or failed.
         */
        OperationAccepted: {
            /** Operation Id */
            operation_id: string;
            /** Stream Id */
            stream_id: string;
            state: components["schemas"]["OperationState"];
        };
        /** OperationError */
        OperationError: {
            /** Code */
            code: string;
            /** Title */
            title: string;
            /** Message */
            message: string;
            /** Cure */
            cure: string | null;
            /**
             * Detail
             * @description The server's own message, if it may quote rows. Null for viewers, and if it cannot.
             */
            detail: string | null;
        };
        /**
         * OperationEvent
         * @description SSE event `operation`: read the operation for details.
         */
        OperationEvent: {
            /** Operation Id */
            operation_id: string;
            /** Kind */
            kind: string;
            /** Target Id */
            target_id: string;
            state: components["schemas"]["OperationState"];
            /** Done */
            done: number;
            /** Total */
            total: number | null;
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /**
         * OperationKind
         * @enum {string}
         */
        OperationKind: "stream.create" | "stream.start" | "stream.stop" | "stream.retry" | "stream.delete" | "destination.add" | "destination.start" | "destination.stop" | "destination.retry" | "destination.drop" | "table.copy" | "index.create" | "index.drop";
        /**
         * OperationState
         * @enum {string}
         */
        OperationState: "pending" | "running" | "succeeded" | "failed";
        /** OperationTarget */
        OperationTarget: {
            /** Type */
            type: string;
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Destination Id
             * @description The one of a stream's destinations. Null: the whole stream.
             */
            destination_id: string | null;
            /**
             * Destination
             * @description Its database's name at the time of the request. Null: the whole stream.
             */
            destination: string | null;
            /**
             * Table
             * @description The table that it concerns, such as public.orders.
             */
            table: string | null;
        };
        /**
         * Outage
         * @description A time in which the stream, one of its several destinations or one of its engines did not work.
         */
        Outage: {
            /**
             * Of
             * @enum {string}
             */
            of: "stream" | "destination" | "engine";
            /**
             * Id
             * @description The id of the stream, destination or engine.
             */
            id: string;
            /** Name */
            name: string;
            state: components["schemas"]["OutageState"];
            /**
             * Reason
             * @description The first cause, in words.
             */
            reason: string;
            /**
             * Became
             * @description The present cause, or the last one, in words. Null: it is still the first, or the first again.
             */
            became: string | null;
            /**
             * Became At
             * @description Since when that is the cause.
             */
            became_at: string | null;
            /**
             * Since
             * Format: date-time
             */
            since: string;
            /**
             * Until
             * @description Null: it has not ended.
             */
            until: string | null;
        };
        /**
         * OutageState
         * @description RETRYING: it tried again by itself. ABORTED: stopped by an error. UNREACHABLE, REFUSED: an engine that gave the
         *     control plane no answer; what it runs may have gone on.
         * @enum {string}
         */
        OutageState: "RETRYING" | "ABORTED" | "UNREACHABLE" | "REFUSED";
        /** Overview */
        Overview: {
            /** Streams */
            streams: components["schemas"]["StreamSummary"][];
            /**
             * Engines Online
             * @description Null: unknown, since the control plane has not asked the engines for 15 s.
             */
            engines_online: number | null;
            /** Engines Total */
            engines_total: number;
            /**
             * Live
             * @description False: Redis cannot be reached, rates and latencies are missing.
             */
            live: boolean;
        };
        /** OverviewRates */
        OverviewRates: {
            /** Streams */
            streams: components["schemas"]["StreamRates"][];
            /**
             * Live
             * @description False: Redis cannot be reached, rates are missing.
             */
            live: boolean;
        };
        /** AlertChannelPage */
        AlertChannelPage: {
            /** Items */
            items: components["schemas"]["AlertChannel"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** AlertDeliveryPage */
        AlertDeliveryPage: {
            /** Items */
            items: components["schemas"]["AlertDelivery"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** AlertSilencePage */
        AlertSilencePage: {
            /** Items */
            items: components["schemas"]["AlertSilence"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** AppliedCurePage */
        AppliedCurePage: {
            /** Items */
            items: components["schemas"]["AppliedCure"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** AuditEntryPage */
        AuditEntryPage: {
            /** Items */
            items: components["schemas"]["AuditEntry"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** DatabasePage */
        DatabasePage: {
            /** Items */
            items: components["schemas"]["Database"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** EnginePage */
        EnginePage: {
            /** Items */
            items: components["schemas"]["Engine"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** OperationPage */
        OperationPage: {
            /** Items */
            items: components["schemas"]["Operation"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** RunSummaryPage */
        RunSummaryPage: {
            /** Items */
            items: components["schemas"]["RunSummary"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** SchedulePage */
        SchedulePage: {
            /** Items */
            items: components["schemas"]["Schedule"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** SourceTablePage */
        SourceTablePage: {
            /** Items */
            items: components["schemas"]["SourceTable"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** StreamEventPage */
        StreamEventPage: {
            /** Items */
            items: components["schemas"]["StreamEvent"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** StreamSummaryPage */
        StreamSummaryPage: {
            /** Items */
            items: components["schemas"]["StreamSummary"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** TokenPage */
        TokenPage: {
            /** Items */
            items: components["schemas"]["Token"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** UserPage */
        UserPage: {
            /** Items */
            items: components["schemas"]["User"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** ParameterChange */
        ParameterChange: {
            /** Name */
            name: string;
            /** Current */
            current: boolean | number | string;
            /** Proposed */
            proposed: boolean | number | string;
        };
        /**
         * ParameterType
         * @enum {string}
         */
        ParameterType: "integer" | "boolean" | "enum" | "text" | "error_policies" | "conflict_handlers" | "conflict_detection" | "statement_handlers";
        /** ParkedChange */
        ParkedChange: {
            /**
             * Number
             * @description In the transaction, from 1; the tables of one TRUNCATE share it. Null: the engine's version cannot edit changes.
             */
            number: number | null;
            operation: components["schemas"]["ParkedOperation"];
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            /**
             * Columns
             * @description Empty for a TRUNCATE.
             */
            columns: components["schemas"]["ParkedColumn"][];
            /**
             * Found By
             * @description The columns by which the destination's row was found: those of the key; for an INSERT also those of another unique key that an existing row already uses; all columns if the table has no key.
             */
            found_by: string[];
            /**
             * Rows Found
             * @description Matching rows at the destination; null: not searched for, or see `problem`.
             */
            rows_found: number | null;
            /**
             * Problem
             * @description Why the destination's row is not known.
             */
            problem: string | null;
            /** @description What an operator has decided about it. Null: nothing. */
            edit: components["schemas"]["ParkedEdit"] | null;
        };
        /** ParkedColumn */
        ParkedColumn: {
            /** Name */
            name: string;
            /**
             * Identity
             * @description The destination's row is found by this column.
             */
            identity: boolean;
            /** @description The value after the change. */
            wanted: components["schemas"]["ParkedValue"];
            /** @description The value at the source before the change. */
            before: components["schemas"]["ParkedValue"];
            /** @description The value at the destination now. */
            now: components["schemas"]["ParkedValue"];
            /**
             * Wanted Differs
             * @description Whether `wanted` differs from `now`; null if one of them is unknown.
             */
            wanted_differs: boolean | null;
            /**
             * Before Differs
             * @description Whether `before` differs from `now`; null if one of them is unknown.
             */
            before_differs: boolean | null;
        };
        /** ParkedContents */
        ParkedContents: {
            error: components["schemas"]["ParkedTransaction"];
            /**
             * Changes Total
             * @description In the transaction; those of one TRUNCATE are one.
             */
            changes_total: number;
            /**
             * Changes
             * @description Those with a higher number than `after`, the lowest first.
             */
            changes: components["schemas"]["ParkedChange"][];
            /**
             * Next After
             * @description The `after` of the next page. Null: there is none.
             */
            next_after: number | null;
        };
        /** ParkedDependant */
        ParkedDependant: {
            /** Id */
            id: number;
            /** Commit Lsn */
            commit_lsn: string;
            /** Xid */
            xid: number;
            /** Lcrs */
            lcrs: number;
            /** Tables */
            tables: string[];
            /** Code */
            code: string;
            /**
             * Message
             * @description Why it waits. Null for viewers, because it quotes values of rows.
             */
            message: string | null;
            /** Sqlstate */
            sqlstate: string | null;
            /**
             * Constraint
             * @description The constraint that it violated when it failed last. Null: none, for viewers, or the engine that noted the error does not tell.
             */
            constraint: string | null;
            /**
             * Parked At
             * Format: date-time
             */
            parked_at: string;
            /**
             * Edited
             * @description Changes of it that are applied with other values.
             */
            edited: number;
            /**
             * Left Out
             * @description Changes of it that are not applied.
             */
            left_out: number;
            /**
             * Failed Change
             * @description The number of the change at which it failed last. Null: it waits, or failed at its commit, or the engine that noted the error does not tell.
             */
            failed_change: number | null;
            /**
             * Etag
             * @description The version of what is decided about its changes. Send it as If-Match to decide about another. Null: the engine's version does not tell, and the last decision counts.
             */
            etag: string | null;
            /**
             * Parent
             * @description The first transaction of the tree with which it shares a row or a table.
             */
            parent: number;
            /**
             * Behind
             * @description The transactions of the whole queue that it waits behind: of each row and table, the first that touches it. 10 at most.
             */
            behind: number[];
            /**
             * Behind Total
             * @description How many these are, also beyond 10.
             */
            behind_total: number;
        };
        /** ParkedEdit */
        ParkedEdit: {
            /**
             * Left Out
             * @description The change is not applied.
             */
            left_out: boolean;
            /**
             * Values
             * @description By column, what is applied in the place of `wanted`: in text form, null is NULL.
             */
            values: {
                [key: string]: string | null;
            };
            /** Reason */
            reason: string;
        };
        /**
         * ParkedOperation
         * @enum {string}
         */
        ParkedOperation: "INSERT" | "UPDATE" | "DELETE" | "TRUNCATE";
        /** ParkedTransaction */
        ParkedTransaction: {
            /** Id */
            id: number;
            /** Commit Lsn */
            commit_lsn: string;
            /** Xid */
            xid: number;
            /** Lcrs */
            lcrs: number;
            /** Tables */
            tables: string[];
            /** Code */
            code: string;
            /**
             * Message
             * @description Why it waits. Null for viewers, because it quotes values of rows.
             */
            message: string | null;
            /** Sqlstate */
            sqlstate: string | null;
            /**
             * Constraint
             * @description The constraint that it violated when it failed last. Null: none, for viewers, or the engine that noted the error does not tell.
             */
            constraint: string | null;
            /**
             * Parked At
             * Format: date-time
             */
            parked_at: string;
            /**
             * Edited
             * @description Changes of it that are applied with other values.
             */
            edited: number;
            /**
             * Left Out
             * @description Changes of it that are not applied.
             */
            left_out: number;
            /**
             * Failed Change
             * @description The number of the change at which it failed last. Null: it waits, or failed at its commit, or the engine that noted the error does not tell.
             */
            failed_change: number | null;
            /**
             * Etag
             * @description The version of what is decided about its changes. Send it as If-Match to decide about another. Null: the engine's version does not tell, and the last decision counts.
             */
            etag: string | null;
        };
        /** ParkedTransactions */
        ParkedTransactions: {
            /** Errors */
            errors: components["schemas"]["ParkedTransaction"][];
            /**
             * Total
             * @description In the whole queue.
             */
            total: number;
            /**
             * Roots
             * @description Those of `total` that do not wait behind another one.
             */
            roots: number;
            /**
             * Causes
             * @description The whole queue by cause, the largest groups first, 100 at most. Null: the engine's version does not tell.
             */
            causes: components["schemas"]["ErrorCause"][] | null;
            /** Next Cursor */
            next_cursor: string | null;
            /** @description The last execution that began since the engine started. */
            execution: components["schemas"]["ErrorExecution"] | null;
        };
        /** ParkedTree */
        ParkedTree: {
            /**
             * Dependants
             * @description All that wait behind the transaction, in the source's commit order: a parent comes before its children, also from one page to the next.
             */
            dependants: components["schemas"]["ParkedDependant"][];
            /**
             * Total
             * @description On all pages.
             */
            total: number;
            /**
             * Behind
             * @description What the transaction itself waits behind, as `behind` of a dependant.
             */
            behind: number[];
            /** Behind Total */
            behind_total: number;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /** ParkedValue */
        ParkedValue: {
            /** @description `absent`: the change does not contain the value, or there is no row. `null`: NULL. `unchanged`: stored outside the row and not sent, because it stayed as it was. `text`: as the destination's server writes it. `raw`: the destination could not read it as the column's type; the bytes as they came, in hex unless they are text. */
            state: components["schemas"]["ParkedValueState"];
            /** Text */
            text: string | null;
            /**
             * Bytes
             * @description The size of the whole value; `text` holds the first 1024 bytes.
             */
            bytes: number;
            /** Cut */
            cut: boolean;
        };
        /**
         * ParkedValueState
         * @enum {string}
         */
        ParkedValueState: "absent" | "null" | "unchanged" | "text" | "raw";
        /** PasswordChange */
        PasswordChange: {
            /**
             * Current Password
             * @description Needed to change your own password; an admin needs none for somebody else's.
             */
            current_password?: string | null;
            /** New Password */
            new_password: string;
            /**
             * Revoke Tokens
             * @description Also revoke the user's API tokens, because anyone who knew the old password may have created some. The token of the request itself, and those that it was created with, stay valid.
             * @default false
             */
            revoke_tokens: boolean;
        };
        /**
         * PathBottleneck
         * @description A row of PATH_BOTTLENECK: one for each path and run.
         */
        PathBottleneck: {
            /** Path Id */
            path_id: string;
            /** Bottleneck Identified */
            bottleneck_identified: boolean;
            /** Component Id */
            component_id: string | null;
            /** Component Name */
            component_name: string | null;
            /** Component Db */
            component_db: string | null;
            component_type: components["schemas"]["ComponentType"] | null;
            /** Sub Component Type */
            sub_component_type: string | null;
            /**
             * Top Thread
             * @description The busiest thread, where there are several: TOP_SESSION_ID.
             */
            top_thread: number | null;
            /**
             * Action Name
             * @description The busiest thread: its id in live samples.
             */
            action_name: string | null;
            /**
             * Top Event
             * @description The event that takes most of its time, if that is over the threshold.
             */
            top_event: string | null;
            /** Top Event Percent */
            top_event_percent: number | null;
            /** Idle Percent */
            idle_percent: number | null;
            /** Flow Control Percent */
            flow_control_percent: number | null;
            /**
             * Advisor Run Reason
             * @description Null when a bottleneck was found, else why there is none.
             */
            advisor_run_reason: string | null;
            verdict: components["schemas"]["Verdict"];
            /**
             * Explanation
             * @description In one or two sentences.
             */
            explanation: string;
        };
        /**
         * PathSeries
         * @description The series of the run's charts. The lists have one entry for each sample.
         */
        PathSeries: {
            /** Path Id */
            path_id: string;
            /** At */
            at: string[];
            /** Messages Per Second */
            messages_per_second: (number | null)[];
            /**
             * Latency P99 Ms
             * @description The latency of transactions that have arrived.
             */
            latency_p99_ms: (number | null)[];
            /**
             * Latency At Least Ms
             * @description Lower bounds, while nothing arrived though changes waited. Empty in runs of an earlier version.
             */
            latency_at_least_ms: (number | null)[];
            /** Lag Bytes */
            lag_bytes: (number | null)[];
        };
        /**
         * PathStatistic
         * @description A row of PATH_STAT.
         */
        PathStatistic: {
            /** Path Id */
            path_id: string;
            /**
             * Statistic Time
             * Format: date-time
             */
            statistic_time: string;
            /** Statistic Name */
            statistic_name: string;
            /** Statistic Value */
            statistic_value: number | null;
            statistic_unit: components["schemas"]["Unit"];
        };
        /** Policy */
        Policy: {
            /** Etag */
            etag: string;
            /** Retention Days */
            retention_days: number;
            /** Runs Max */
            runs_max: number;
            thresholds: components["schemas"]["Thresholds"];
            /** Interval Seconds Suggested */
            interval_seconds_suggested: number;
        };
        /**
         * PolicyAction
         * @enum {string}
         */
        PolicyAction: "stop" | "park" | "skip" | "retry";
        /** PolicyUpdate */
        PolicyUpdate: {
            /** Retention Days */
            retention_days?: number | null;
            /** Runs Max */
            runs_max?: number | null;
            /**
             * Idle Threshold
             * @description Percent.
             */
            idle_threshold?: number | null;
            /**
             * Flow Control Threshold
             * @description Percent.
             */
            flow_control_threshold?: number | null;
            /**
             * Event Threshold
             * @description Percent.
             */
            event_threshold?: number | null;
        };
        /** Positions */
        Positions: {
            /** Captured */
            captured: string | null;
            /** Applied */
            applied: string | null;
            /** Confirmed */
            confirmed: string | null;
            /** Source End */
            source_end: string | null;
        };
        /** Preflight */
        Preflight: {
            /**
             * Ready
             * @description No check failed, and whatever needs consent is accepted.
             */
            ready: boolean;
            /** Checks */
            checks: components["schemas"]["Check"][];
        };
        /** PreflightRequest */
        PreflightRequest: {
            /** Source Id */
            source_id: string;
            /**
             * Capture Engine Id
             * @description The engine that is to capture. Null: the only one.
             */
            capture_engine_id?: string | null;
            /** Destinations */
            destinations: components["schemas"]["DestinationCreate"][];
            rules: components["schemas"]["TableRules"];
            /**
             * @description logical: the source decodes its WAL for the stream, and keeps it for as long as a destination is behind. wal: the engine receives the source's WAL, stages it on its own disk and mines it there; the source forgets what is staged.
             * @default logical
             */
            capture_kind: components["schemas"]["CaptureKind"];
            /**
             * Parameters
             * @description By their names; error_policies is a list of ErrorPolicy, conflict_handlers one of ConflictHandler, conflict_detection one of ComparedTable, statement_handlers one of StatementHandler (only administrators may change it).
             */
            parameters?: {
                [key: string]: boolean | number | string | {
                    [key: string]: unknown;
                }[];
            };
            /**
             * Accept
             * @description The consents of checks that are accepted, as the preflight names them; or a check's id alone, to accept whatever that check says. Only admins may accept `carried_code`.
             */
            accept?: string[];
        };
        /**
         * ProblemDetails
         * @description RFC 9457. `type` and `code` are stable; `cure` says what to do, `sql` is the cure as SQL if there is one.
         */
        ProblemDetails: {
            /**
             * Type
             * @example urn:thalweg:problem:not_found
             */
            type: string;
            /** Title */
            title: string;
            /** Status */
            status: number;
            /** Detail */
            detail: string;
            /** Instance */
            instance: string;
            /** Code */
            code: string;
            /**
             * Cure
             * @default null
             */
            cure: string | null;
            /**
             * Sql
             * @default null
             */
            sql: string | null;
            /**
             * Errors
             * @default []
             */
            errors: components["schemas"]["FieldProblem"][];
            /**
             * Checks
             * @description For preflight_failed: the checks that stand in the way, as a preflight returns them, with their consents.
             */
            checks: components["schemas"]["Check"][];
        };
        /** Progress */
        Progress: {
            /** Done */
            done: number;
            /**
             * Total
             * @description Null while it is not known.
             */
            total: number | null;
            unit: components["schemas"]["ProgressUnit"];
        };
        /**
         * ProgressUnit
         * @enum {string}
         */
        ProgressUnit: "rows" | "steps";
        /**
         * ReadFrom
         * @enum {string}
         */
        ReadFrom: "primary" | "standby";
        /** Readiness */
        Readiness: {
            /**
             * Status
             * @enum {string}
             */
            status: "ready" | "degraded" | "unavailable";
            /**
             * Store
             * @enum {string}
             */
            store: "ok" | "unreachable";
            /**
             * Redis
             * @enum {string}
             */
            redis: "ok" | "unreachable";
            /**
             * Collector
             * @description late: it runs, but has recorded nothing of an engine for 15 s or longer.
             * @enum {string}
             */
            collector: "ok" | "late" | "absent" | "unknown";
            /**
             * Collector Round Age Seconds
             * @description How long ago the collector last recorded what it gathers, at the engine that waits longest. Null: unknown, as without Redis.
             */
            collector_round_age_seconds: number | null;
            /**
             * History
             * @description Whether the store accepts samples; failing if its disk is full, for example.
             * @enum {string}
             */
            history: "ok" | "failing" | "unknown";
            /**
             * Reasons
             * @description Everything that is wrong, in words. Empty: nothing is.
             */
            reasons: string[];
        };
        /**
         * RecentChanges
         * @description The next changes of the table that a running stream captures, as the source sends them: before the stream's own
         *     rules and transformations.
         */
        RecentChanges: {
            /**
             * Stream Id
             * @description A stream from the same source, which has the table.
             */
            stream_id: string;
            /**
             * Limit
             * @description So many changes at most. TRUNCATEs are none of them.
             * @default 20
             */
            limit: number;
            /**
             * Wait Ms
             * @description How long to wait for them, in milliseconds. Changes that are not committed by then are left out.
             * @default 5000
             */
            wait_ms: number;
        };
        /**
         * RecoveryCodes
         * @description Each can be used once, instead of a code. Shown only once: only hashes are stored.
         */
        RecoveryCodes: {
            /** Codes */
            codes: string[];
        };
        /**
         * Rename
         * @description Another name of a table, or another schema for all tables of a schema that have no entry of their own for it.
         */
        Rename: {
            /**
             * Schema
             * @description Its exact name.
             * @example sales
             */
            schema: string;
            /**
             * Table
             * @description Its exact name. Null: all tables of the schema.
             * @example orders
             */
            table?: string | null;
            /**
             * To Schema
             * @description The schema at the destinations; null leaves it to the rename of the table's schema, if there is one.
             * @example archive
             */
            to_schema?: string | null;
            /**
             * To Table
             * @description The table's name at the destinations; null leaves it.
             * @example orders_2026
             */
            to_table?: string | null;
        };
        /** RenameColumn */
        RenameColumn: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "rename_column";
            /**
             * Column
             * @description Its name as the steps before this one have left it.
             */
            column: string;
            /** To */
            to: string;
        };
        /** RenamedTable */
        RenamedTable: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
        };
        /**
         * ReplicaIdentity
         * @enum {string}
         */
        ReplicaIdentity: "default" | "full" | "index" | "nothing";
        /**
         * ReportFormat
         * @description TEXT: all six tables, pipe-delimited. CSV: one of them. HTML: self-contained, with charts.
         * @enum {string}
         */
        ReportFormat: "text" | "csv" | "html";
        /**
         * Resolution
         * @enum {string}
         */
        Resolution: "second" | "minute" | "hour";
        /**
         * Role
         * @description Each role has the rights of those before it. METRICS is for tokens: it can only read /metrics.
         * @enum {string}
         */
        Role: "metrics" | "viewer" | "operator" | "admin";
        /**
         * RoleFacts
         * @description The database user's privileges, as far as replication needs them.
         */
        RoleFacts: {
            /** Name */
            name: string;
            /** Superuser */
            superuser: boolean;
            /** Replication */
            replication: boolean;
            /** Create On Database */
            create_on_database: boolean;
            /** May Set Session Replication Role */
            may_set_session_replication_role: boolean;
        };
        /**
         * RowOperation
         * @enum {string}
         */
        RowOperation: "INSERT" | "UPDATE" | "DELETE";
        /**
         * RowRule
         * @description Decides whether a row or change of a table is replicated.
         */
        RowRule: {
            /**
             * Name
             * @description Once among the rules that concern a table.
             * @example north_only
             */
            name: string;
            /**
             * Operations
             * @description The operations that it is for, each once. Null: all.
             */
            operations?: components["schemas"]["RuledOperation"][] | null;
            /**
             * Condition
             * @description A condition as in SQL's WHERE, at most 64 KiB: see the language of rules. Null: always.
             * @example region = 'north'
             */
            condition?: string | null;
            /**
             * Subset
             * @description The destination keeps exactly the rows for which the rules are true: an update that brings a row in becomes an insert, and one that takes it out becomes a delete. All positive rules that concern a table make a subset, or none; such a rule names no operations.
             * @default false
             */
            subset: boolean;
            /**
             * @description The rule's policy for a change for which its condition cannot be evaluated, because a value did not come (rule_undecidable) or because it fails (rule_failed): `stop` stops the stream in front of the change, unless other rules decide; `as_true` counts the rule as true for it, and `as_false` as not true, as NULL is. Such changes are counted (`by_policy`) and logged. An initial copy knows no policy: a condition that fails for a row stops it.
             * @default stop
             */
            on_error: components["schemas"]["OnError"];
        };
        /** RuleCounts */
        RuleCounts: {
            /**
             * Counted Since
             * Format: date-time
             * @description When the counts last began at 0, as they do whenever the capture starts; of a destination's rules, whenever its changes begin to be read. What is then read again counts again.
             */
            counted_since: string;
            /**
             * Tables
             * @description Every table with rules. What is rolled back counts, too.
             */
            tables: components["schemas"]["RuleCountsOfTable"][];
        };
        /** RuleCountsOfTable */
        RuleCountsOfTable: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            /**
             * Scopes
             * @description Where its rules come from.
             */
            scopes: components["schemas"]["RuleScope"][];
            /**
             * Passed
             * @description Changes that passed as they were.
             */
            passed: number;
            /**
             * Dropped
             * @description Without what the source has not sent.
             */
            dropped: number;
            /**
             * Became Inserts
             * @description Updates that brought a row into the subset, and are an INSERT there.
             */
            became_inserts: number;
            /**
             * Became Deletes
             * @description Updates that took a row out of the subset, and are a DELETE there.
             */
            became_deletes: number;
            /**
             * By Policy
             * @description Changes among all these that `on_error` of a rule has decided, because its condition could not be evaluated.
             */
            by_policy: number;
            /**
             * At Source
             * @description Operations (INSERT, UPDATE) for which the source evaluates the rules: what they drop is not sent, and no count contains it.
             * @default []
             */
            at_source: string[];
            /**
             * At Engine Because
             * @description Why the engine alone evaluates the rules for inserts or updates. Null: it does not, or has not told; a destination's own rules are always the engine's.
             */
            at_engine_because: string | null;
        };
        /** RuleOutcome */
        RuleOutcome: {
            /**
             * Set
             * @description positive or negative.
             */
            set: string;
            /**
             * Rule
             * @description Its name.
             */
            rule: string;
            /** @description Where it comes from. */
            scope: components["schemas"]["RuleScope"];
            /**
             * Outcome
             * @description TRUE, FALSE, NULL, UNDECIDABLE (a value did not come), FAILED, or OTHER OPERATION: the rule is for others.
             */
            outcome: string;
            /**
             * Before
             * @description The same for the row before an UPDATE, where the rules make a subset; null otherwise.
             */
            before: string | null;
            /**
             * Counts As
             * @description TRUE or FALSE: what the rule counts as where `outcome` or `before` is UNDECIDABLE or FAILED, by its `on_error`. Null: neither is, or the rule has no policy but to stop.
             */
            counts_as: string | null;
        };
        /**
         * RuleProblem
         * @description Something that would stop a stream with these rules.
         */
        RuleProblem: {
            /**
             * Schema
             * @description Null: it is about a global rule.
             */
            schema: string | null;
            /**
             * Table
             * @description Null: it is about the rule, which fits none of the tables that it concerns for this one reason.
             */
            table: string | null;
            /**
             * Rule
             * @description Its name. Null: it is about the table.
             */
            rule: string | null;
            /** @description Where the rule comes from. Null: it is about the table. */
            scope: components["schemas"]["RuleScope"] | null;
            /**
             * Code
             * @description rule_refused, rule_undecidable or missing_table.
             */
            code: string;
            /** Message */
            message: string;
            /** Cure */
            cure: string;
            /**
             * Line
             * @description In the rule's condition, from 1. Null: it is about the whole rule.
             */
            line: number | null;
            /**
             * Column
             * @description In characters, from 1; null like the line.
             */
            column: number | null;
            /**
             * Offset
             * @description In bytes of UTF-8, from 0; null like the line.
             */
            offset: number | null;
            /**
             * Certain
             * @description False: only an update that leaves a long value as it was would stop the stream.
             */
            certain: boolean;
        };
        /**
         * RuleScope
         * @enum {string}
         */
        RuleScope: "table" | "schema" | "global";
        /** RuleStop */
        RuleStop: {
            /**
             * Code
             * @description rule_undecidable or rule_failed.
             */
            code: string;
            /** Message */
            message: string;
            /** Sqlstate */
            sqlstate: string | null;
        };
        /**
         * RuledOperation
         * @enum {string}
         */
        RuledOperation: "INSERT" | "UPDATE" | "DELETE" | "TRUNCATE";
        /** RulesCheck */
        RulesCheck: {
            /**
             * Problems
             * @description None of them certain: the rules can be kept.
             */
            problems: components["schemas"]["RuleProblem"][];
        };
        /** RulesCheckRequest */
        RulesCheckRequest: {
            /** Source Id */
            source_id: string;
            /**
             * Capture Engine Id
             * @description The engine that captures the stream. Null: the only one.
             */
            capture_engine_id?: string | null;
            /** Row Rules */
            row_rules: components["schemas"]["ScopedRules"][];
            /**
             * Include
             * @description Patterns of tables, as in the stream's rules. Rules of a schema and global ones are checked against these tables, beside those that `row_rules` name.
             */
            include?: components["schemas"]["TablePattern"][];
            /**
             * Exclude
             * @description Patterns of tables, as in the stream's rules.
             */
            exclude?: components["schemas"]["TablePattern"][];
            /**
             * Inserts Only
             * @description Tables, as in the stream's rules, of which no rule sees updates and deletes.
             */
            inserts_only?: components["schemas"]["TableRef"][];
        };
        /** RulesTest */
        RulesTest: {
            /**
             * Problems
             * @description The problems that streams:check-rules would find. If a rule is refused, nothing is judged.
             */
            problems: components["schemas"]["RuleProblem"][];
            /**
             * Changes
             * @description Those of the request, then the stream's, then the table's rows as INSERTs.
             */
            changes: components["schemas"]["JudgedChange"][];
            /**
             * Recent End
             * @description Why there are no more changes of the stream: LIMIT, TIME (no more came), or SIZE (the next one would have exceeded 8 MiB in all). Null: none were asked for, or a rule is refused.
             */
            recent_end: string | null;
        };
        /** RulesTestRequest */
        RulesTestRequest: {
            /** Source Id */
            source_id: string;
            /**
             * Capture Engine Id
             * @description The engine that captures the stream. Null: the only one.
             */
            capture_engine_id?: string | null;
            table: components["schemas"]["TableRef"];
            /**
             * Row Rules
             * @description Row rules, as a stream or a destination has them: those that concern the table are tried.
             */
            row_rules: components["schemas"]["ScopedRules"][];
            /**
             * Sample
             * @description So many rows of the table are judged as INSERTs; 0: none.
             * @default 20
             */
            sample: number;
            /**
             * Changes
             * @description Changes to judge, before the rows of the table.
             */
            changes?: components["schemas"]["TriedChange"][];
            /** @description Changes of a stream to judge; null: none. */
            recent?: components["schemas"]["RecentChanges"] | null;
        };
        /**
         * Run
         * @description A run with its six tables and its findings.
         */
        Run: {
            /** Id */
            id: number;
            /**
             * At
             * Format: date-time
             */
            at: string;
            reason: components["schemas"]["RunReason"];
            /**
             * Detail
             * @description The schedule's name, the alert's, or the cure's.
             */
            detail: string | null;
            /** Requested By */
            requested_by: string;
            /** Name */
            name: string | null;
            /** Note */
            note: string | null;
            /** Kept */
            kept: boolean;
            /** Etag */
            etag: string;
            scope: components["schemas"]["RunScope"];
            /** Begin At */
            begin_at: string | null;
            /** End At */
            end_at: string | null;
            /** Samples */
            samples: number;
            /** Paths */
            paths: components["schemas"]["RunPath"][];
            /** Findings */
            findings: number;
            /** @description The worst severity of its findings. Null: it has none. */
            worst: components["schemas"]["FindingSeverity"] | null;
            analysis: components["schemas"]["Analysis"];
            /** Findings Ranked */
            findings_ranked: components["schemas"]["Finding"][];
            /** Fact Sheets */
            fact_sheets: components["schemas"]["FactSheet"][];
            /** Series */
            series: components["schemas"]["PathSeries"][];
        };
        /** RunCreate */
        RunCreate: {
            /**
             * Stream Id
             * @description Only this stream's paths.
             */
            stream_id?: string | null;
            /**
             * Component Id
             * @description Only paths through this component, as the tables and the topology name it.
             */
            component_id?: string | null;
            /**
             * Window Seconds
             * @description Analyse this many seconds of live samples, up to now; the answer is immediate.
             * @default 30
             */
            window_seconds: number;
            /**
             * Begin At
             * @description Instead of window_seconds, together with end_at: analyse what was recorded then.
             */
            begin_at?: string | null;
            /** End At */
            end_at?: string | null;
            /**
             * Facts
             * @description Read the databases' catalogues for causes and cures.
             * @default true
             */
            facts: boolean;
            /** Name */
            name?: string | null;
            /** Note */
            note?: string | null;
        };
        /**
         * RunPath
         * @description A path of a run in one line.
         */
        RunPath: {
            /** Path Id */
            path_id: string;
            /** Stream Id */
            stream_id: string;
            /** Stream Name */
            stream_name: string;
            /** Source Db */
            source_db: string;
            /** Destination Db */
            destination_db: string;
            verdict: components["schemas"]["Verdict"];
            /** Bottleneck Identified */
            bottleneck_identified: boolean;
            /** Component Id */
            component_id: string | null;
            component_type: components["schemas"]["ComponentType"] | null;
            /** Sub Component Type */
            sub_component_type: string | null;
            /** Top Event */
            top_event: string | null;
            /** Explanation */
            explanation: string;
            /** Messages Per Second */
            messages_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            /** Latency P50 Seconds */
            latency_p50_seconds: number | null;
            /**
             * Latency P99 Seconds
             * @description The latency of transactions that have arrived.
             */
            latency_p99_seconds: number | null;
            /**
             * Latency At Least Seconds
             * @description The age of the oldest change that waited while nothing arrived: the latency is at least so long. Null: something always arrived, or the run is of an earlier version, which counts it in latency_p99_seconds.
             */
            latency_at_least_seconds: number | null;
            /** Lag Bytes */
            lag_bytes: number | null;
            /**
             * Top Finding
             * @description Title of the highest ranked finding that is a cause; null: none is.
             */
            top_finding: string | null;
            top_finding_code: components["schemas"]["FindingCode"] | null;
            /**
             * Path Name
             * @description “stream → destination”: how it is called everywhere.
             */
            readonly path_name: string;
        };
        /**
         * RunReason
         * @enum {string}
         */
        RunReason: "on_demand" | "schedule" | "alert" | "before_cure" | "after_cure";
        /**
         * RunScope
         * @description The scope: all paths, those of a stream, or those through one component.
         */
        RunScope: {
            /** Stream Id */
            stream_id: string | null;
            /** Component Id */
            component_id: string | null;
            /**
             * Window Seconds
             * @description Null where begin and end were given.
             */
            window_seconds: number | null;
        };
        /** RunSummary */
        RunSummary: {
            /** Id */
            id: number;
            /**
             * At
             * Format: date-time
             */
            at: string;
            reason: components["schemas"]["RunReason"];
            /**
             * Detail
             * @description The schedule's name, the alert's, or the cure's.
             */
            detail: string | null;
            /** Requested By */
            requested_by: string;
            /** Name */
            name: string | null;
            /** Note */
            note: string | null;
            /** Kept */
            kept: boolean;
            /** Etag */
            etag: string;
            scope: components["schemas"]["RunScope"];
            /** Begin At */
            begin_at: string | null;
            /** End At */
            end_at: string | null;
            /** Samples */
            samples: number;
            /** Paths */
            paths: components["schemas"]["RunPath"][];
            /** Findings */
            findings: number;
            /** @description The worst severity of its findings. Null: it has none. */
            worst: components["schemas"]["FindingSeverity"] | null;
        };
        /** RunUpdate */
        RunUpdate: {
            /**
             * Name
             * @description Omitted: it is unchanged.
             */
            name?: string | null;
            /** Note */
            note?: string | null;
            /**
             * Kept
             * @description True: the retention does not remove it.
             */
            kept?: boolean | null;
        };
        /** Sample */
        Sample: {
            /** Stream Id */
            stream_id: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Interval Seconds
             * @description Null in the first sample: there is no rate yet.
             */
            interval_seconds: number | null;
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for all of it, as the stream's resource has it. Null: the sample is of the past. */
            state: components["schemas"]["ShownState"] | null;
            /**
             * Lcrs Per Second
             * @description LCRs applied. With several destinations: LCRs captured, counted once; each destination has its own rate. Null: the rate of a component is unknown, as in its first second.
             */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            latency: components["schemas"]["LatencySample"];
            lag: components["schemas"]["Lag"];
            /**
             * Error Queue Transactions
             * @description The total of the destinations for which it is known: a lower bound while one is unknown. Null: none is known.
             */
            error_queue_transactions: number | null;
            /** Components */
            components: components["schemas"]["ComponentSample"][];
            /** Destinations */
            destinations: components["schemas"]["DestinationSample"][];
        };
        /** Samples */
        Samples: {
            /** Stream Id */
            stream_id: string;
            /** Samples */
            samples: components["schemas"]["Sample"][];
            /**
             * Live
             * @description False: Redis cannot be reached, samples are missing.
             */
            live: boolean;
        };
        /** Schedule */
        Schedule: {
            /** Id */
            id: string;
            /** Etag */
            etag: string;
            /** Name */
            name: string;
            /** Stream Id */
            stream_id: string | null;
            /** Interval Seconds */
            interval_seconds: number;
            /** Window Seconds */
            window_seconds: number;
            /** Enabled */
            enabled: boolean;
            /**
             * Next At
             * @description Null while it is not enabled.
             */
            next_at: string | null;
            /** Last At */
            last_at: string | null;
            /** Last Run Id */
            last_run_id: number | null;
            /** Last Error */
            last_error: string | null;
        };
        /** ScheduleCreate */
        ScheduleCreate: {
            /** Name */
            name: string;
            /**
             * Stream Id
             * @description Null: all paths.
             */
            stream_id?: string | null;
            /**
             * Interval Seconds
             * @default 300
             */
            interval_seconds: number;
            /**
             * Window Seconds
             * @default 60
             */
            window_seconds: number;
            /**
             * Enabled
             * @default true
             */
            enabled: boolean;
        };
        /** ScheduleUpdate */
        ScheduleUpdate: {
            /** Name */
            name?: string | null;
            /** Interval Seconds */
            interval_seconds?: number | null;
            /** Window Seconds */
            window_seconds?: number | null;
            /** Enabled */
            enabled?: boolean | null;
        };
        /**
         * ScopedRules
         * @description The rules of one scope. All rules that concern a table, its own, its schema's and the global ones, decide
         *     together: a change passes unless a negative rule is true for it, and if a positive one is, where one of them has a
         *     positive set. Positive sets that are all empty let nothing pass.
         */
        ScopedRules: {
            /**
             * @description Which tables of the stream they concern, also those that it gets later. `global`: all.
             * @default table
             */
            scope: components["schemas"]["RuleScope"];
            /**
             * Schema
             * @description Its exact name. Null for the scope `global`.
             * @example public
             */
            schema?: string | null;
            /**
             * Table
             * @description Its exact name. Only for the scope `table`.
             * @example orders
             */
            table?: string | null;
            /**
             * Positive
             * @description Null: no such set.
             */
            positive?: components["schemas"]["RowRule"][] | null;
            /**
             * Negative
             * @description Null: no such set.
             */
            negative?: components["schemas"]["RowRule"][] | null;
        };
        /**
         * Search
         * @description A search in a source's log. The engine forgets it ten minutes after its end.
         */
        Search: {
            /** Id */
            id: string;
            /** Stream Id */
            stream_id: string;
            state: components["schemas"]["SearchState"];
            /**
             * Truncated
             * @description The limit, or the size of a result, is reached, and more may follow: search again from the last change's commit_lsn.
             */
            truncated: boolean;
            /**
             * Begun At
             * Format: date-time
             */
            begun_at: string;
            /** Ended At */
            ended_at: string | null;
            /**
             * Mined Bytes
             * @description WAL that it has read.
             */
            mined_bytes: number;
            /**
             * Total Bytes
             * @description WAL that it reads.
             */
            total_bytes: number;
            /**
             * From
             * @description LSN where it begins to read.
             */
            from: string;
            /**
             * To
             * @description LSN where it ends.
             */
            to: string;
            /**
             * Found
             * @description Changes so far.
             */
            found: number;
            /** @description Why it has FAILED. */
            error: components["schemas"]["SearchError"] | null;
        };
        /**
         * SearchCreate
         * @description A search asks for all that is kept, where nothing is given. All that is given holds at once.
         */
        SearchCreate: {
            /**
             * Stream Id
             * @description The stream whose engine searches. Null: of those that have the table, the one that keeps WAL from furthest back.
             */
            stream_id?: string | null;
            /**
             * From
             * @description LSN: transactions that committed there or later.
             * @example 0/1A2B3C4D
             */
            from?: string | null;
            /**
             * To
             * @description LSN: transactions that committed before it.
             */
            to?: string | null;
            /**
             * From Time
             * @description Transactions that committed then or later.
             */
            from_time?: string | null;
            /**
             * To Time
             * @description Transactions that committed before it.
             */
            to_time?: string | null;
            /** @description Only this table's, by the name it had then. */
            table?: components["schemas"]["SearchedTable"] | null;
            /**
             * Key
             * @description Columns of the table with their values as text, null for NULL. A change is found that has them before or after it. With `table`.
             * @example {
             *       "id": "5"
             *     }
             */
            key?: {
                [key: string]: string | null;
            } | null;
            /**
             * Xid
             * @description Only this transaction of the source.
             */
            xid?: number | null;
            /**
             * Limit
             * @description The number of changes at which it ends.
             * @default 1000
             */
            limit: number;
        };
        /** SearchError */
        SearchError: {
            /** Code */
            code: string;
            /** Message */
            message: string;
            /** Cure */
            cure: string | null;
        };
        /** SearchResult */
        SearchResult: {
            /** Id */
            id: string;
            /** Stream Id */
            stream_id: string;
            state: components["schemas"]["SearchState"];
            /**
             * Truncated
             * @description The limit, or the size of a result, is reached, and more may follow: search again from the last change's commit_lsn.
             */
            truncated: boolean;
            /**
             * Begun At
             * Format: date-time
             */
            begun_at: string;
            /** Ended At */
            ended_at: string | null;
            /**
             * Mined Bytes
             * @description WAL that it has read.
             */
            mined_bytes: number;
            /**
             * Total Bytes
             * @description WAL that it reads.
             */
            total_bytes: number;
            /**
             * From
             * @description LSN where it begins to read.
             */
            from: string;
            /**
             * To
             * @description LSN where it ends.
             */
            to: string;
            /**
             * Found
             * @description Changes so far.
             */
            found: number;
            /** @description Why it has FAILED. */
            error: components["schemas"]["SearchError"] | null;
            /** Changes */
            changes: components["schemas"]["Change"][];
            /**
             * Next After
             * @description Send it as `after` for the next page. Null: no more now; while the search is RUNNING, ask again with the last change's number.
             */
            next_after: number | null;
        };
        /**
         * SearchState
         * @description The state of a search in a source's log.
         * @enum {string}
         */
        SearchState: "DONE" | "RUNNING" | "FAILED";
        /** SearchedTable */
        SearchedTable: {
            /**
             * Schema
             * @example public
             */
            schema: string;
            /**
             * Table
             * @example orders
             */
            table: string;
        };
        /** Searches */
        Searches: {
            /** Streams */
            streams: components["schemas"]["KeptStream"][];
            /**
             * Unavailable
             * @description Streams with log mining whose log cannot be searched now, with the reason.
             */
            unavailable: components["schemas"]["UnsearchableStream"][];
            /**
             * Reason
             * @description Why no stream can be searched; null if one can.
             */
            reason: string | null;
            /**
             * Searches
             * @description Those that run and the last that ended, of all these streams.
             */
            searches: components["schemas"]["Search"][];
        };
        /** SecondFactor */
        SecondFactor: {
            /** Enabled */
            enabled: boolean;
            /** Since */
            since: string | null;
            /** Recovery Codes Left */
            recovery_codes_left: number;
            /**
             * Demanded
             * @description Whether an admin requires one of this user. If so, it cannot be removed.
             */
            demanded: boolean;
        };
        /** SecondFactorCode */
        SecondFactorCode: {
            /**
             * Code
             * @description The code that the authenticator shows for the secret that was prepared.
             */
            code: string;
        };
        /**
         * SecondFactorDraft
         * @description Shown only once. It takes effect when a code confirms it.
         */
        SecondFactorDraft: {
            /**
             * Secret
             * @description For authenticators that do not scan: base32; six digits, 30 seconds, SHA-1.
             */
            secret: string;
            /**
             * Uri
             * @description The content of the QR code.
             */
            uri: string;
            /**
             * Qr Code
             * @description The QR code: an SVG as a data: address.
             */
            qr_code: string;
        };
        /** SecondFactorProof */
        SecondFactorProof: {
            /** Current Password */
            current_password: string;
            /**
             * Code
             * @description A code of the present second factor, or a recovery code. Null: there is none yet.
             */
            code?: string | null;
        };
        /**
         * SeenServer
         * @description One of the servers of a database that is read at a standby.
         */
        SeenServer: {
            /** Address */
            address: string;
            /** @description Null: it did not answer, `message` says why. */
            role: components["schemas"]["ServerRole"] | null;
            /** System Identifier */
            system_identifier: string | null;
            /** Wal Level */
            wal_level: string | null;
            /** Message */
            message: string | null;
        };
        /**
         * ServerRole
         * @enum {string}
         */
        ServerRole: "primary" | "standby";
        /** ServerSlot */
        ServerSlot: {
            /** Name */
            name: string;
            /**
             * Slot Type
             * @description logical or physical.
             */
            slot_type: string;
            /** Plugin */
            plugin: string | null;
            /**
             * Database
             * @description The database that it decodes, by its name on the server.
             */
            database: string | null;
            /** Temporary */
            temporary: boolean;
            /**
             * Active
             * @description A client is reading from it now.
             */
            active: boolean;
            /** Active Pid */
            active_pid: number | null;
            /**
             * Wal Status
             * @description reserved, extended, unreserved (about to be lost) or lost. Null: it reserves nothing yet.
             */
            wal_status: string | null;
            /**
             * Invalidation Reason
             * @description Why it is lost, from PostgreSQL 17 on.
             */
            invalidation_reason: string | null;
            /**
             * Retained Bytes
             * @description WAL that the server keeps for it: from its restart position on.
             */
            retained_bytes: number;
            /**
             * Retained Age Seconds
             * @description How long ago the oldest of it was written. Null: before anybody looked.
             */
            retained_age_seconds: number | null;
            /**
             * Growth Bytes Per Second
             * @description The growth of the retained WAL over the last minute, or the last three while it is steady. Null: not observed long enough.
             */
            growth_bytes_per_second: number | null;
            /**
             * Safe Bytes
             * @description WAL that may be written before the slot is lost. Null: max_slot_wal_keep_size sets no limit.
             */
            safe_bytes: number | null;
            /**
             * Seconds To Full
             * @description Until the slot is lost, at the present growth. Null: no limit, no steady growth, or more than 30 days.
             */
            seconds_to_full: number | null;
            /**
             * Idle Seconds
             * @description How long no client has read from it. Null: one does, or the server is older than 17.
             */
            idle_seconds: number | null;
            /**
             * Seconds To Idle Timeout
             * @description Until idle_replication_slot_timeout invalidates it, unless a client reads from it. Null: no such timeout applies.
             */
            seconds_to_idle_timeout: number | null;
            /** Restart Lsn */
            restart_lsn: string | null;
            /** Confirmed Lsn */
            confirmed_lsn: string | null;
            /**
             * Xmin Age
             * @description Transactions since the oldest whose rows it keeps vacuum from removing.
             */
            xmin_age: number | null;
            /**
             * Catalog Xmin Age
             * @description The same for system catalogues.
             */
            catalog_xmin_age: number | null;
            /**
             * Read At
             * Format: date-time
             */
            read_at: string;
            owner: components["schemas"]["SlotOwner"];
            /** @description Null if no stream here owns it. */
            stream: components["schemas"]["SlotStream"] | null;
            /** @description The engine that has the stream, where the stream is unknown here. */
            engine: components["schemas"]["SlotEngine"] | null;
            /**
             * Why No Forecast
             * @description Why `seconds_to_full` is not known, in a sentence. Null where it is.
             */
            why_no_forecast: string | null;
            /**
             * Drop Sql
             * @description For an orphan: the statement that `slots_drop` runs on the server.
             */
            drop_sql: string | null;
        };
        /**
         * Session
         * @description The session of the browser: the cookie is HttpOnly, so `csrf_token` is read from here.
         */
        Session: {
            user: components["schemas"]["User"];
            /**
             * Csrf Token
             * @description Send as X-CSRF-Token with every change. Null when an API token authenticates.
             */
            csrf_token: string | null;
            /** Expires At */
            expires_at: string | null;
            /**
             * Second Factor Missing
             * @description True: an admin requires a second factor. Until one is set up, everything else is refused.
             */
            second_factor_missing: boolean;
        };
        /** SessionCode */
        SessionCode: {
            /**
             * Code
             * @description The code that the authenticator shows, or a recovery code.
             */
            code: string;
        };
        /** SessionCreate */
        SessionCreate: {
            /** Name */
            name: string;
            /** Password */
            password: string;
        };
        /**
         * ShownState
         * @description The one word that users see for what a destination or a stream does: its status unless it is ENABLED, else its
         *     phase. PAUSED: a destination is switched off while its stream is not, or all of a stream's are. PARKING: it applies
         *     nothing, and parks every transaction that comes. STALLED: it applies nothing though changes wait for it, or nothing
         *     is captured because another one's backlog is full. UNKNOWN also what only a newer version knows.
         * @enum {string}
         */
        ShownState: "PAUSED" | "ABORTED" | "DROPPED" | "INITIALIZING" | "INSTANTIATING" | "CATCHING UP" | "REPLICATING" | "RETRYING" | "DRAINING" | "DROPPING" | "STOPPED" | "PARKING" | "STALLED" | "UNKNOWN";
        /** Slot */
        Slot: {
            /** Name */
            name: string;
            /**
             * Slot Type
             * @description logical or physical.
             */
            slot_type: string;
            /** Plugin */
            plugin: string | null;
            /**
             * Database
             * @description The database that it decodes, by its name on the server.
             */
            database: string | null;
            /** Temporary */
            temporary: boolean;
            /**
             * Active
             * @description A client is reading from it now.
             */
            active: boolean;
            /** Active Pid */
            active_pid: number | null;
            /**
             * Wal Status
             * @description reserved, extended, unreserved (about to be lost) or lost. Null: it reserves nothing yet.
             */
            wal_status: string | null;
            /**
             * Invalidation Reason
             * @description Why it is lost, from PostgreSQL 17 on.
             */
            invalidation_reason: string | null;
            /**
             * Retained Bytes
             * @description WAL that the server keeps for it: from its restart position on.
             */
            retained_bytes: number;
            /**
             * Retained Age Seconds
             * @description How long ago the oldest of it was written. Null: before anybody looked.
             */
            retained_age_seconds: number | null;
            /**
             * Growth Bytes Per Second
             * @description The growth of the retained WAL over the last minute, or the last three while it is steady. Null: not observed long enough.
             */
            growth_bytes_per_second: number | null;
            /**
             * Safe Bytes
             * @description WAL that may be written before the slot is lost. Null: max_slot_wal_keep_size sets no limit.
             */
            safe_bytes: number | null;
            /**
             * Seconds To Full
             * @description Until the slot is lost, at the present growth. Null: no limit, no steady growth, or more than 30 days.
             */
            seconds_to_full: number | null;
            /**
             * Idle Seconds
             * @description How long no client has read from it. Null: one does, or the server is older than 17.
             */
            idle_seconds: number | null;
            /**
             * Seconds To Idle Timeout
             * @description Until idle_replication_slot_timeout invalidates it, unless a client reads from it. Null: no such timeout applies.
             */
            seconds_to_idle_timeout: number | null;
            /** Restart Lsn */
            restart_lsn: string | null;
            /** Confirmed Lsn */
            confirmed_lsn: string | null;
            /**
             * Xmin Age
             * @description Transactions since the oldest whose rows it keeps vacuum from removing.
             */
            xmin_age: number | null;
            /**
             * Catalog Xmin Age
             * @description The same for system catalogues.
             */
            catalog_xmin_age: number | null;
            /**
             * Read At
             * Format: date-time
             */
            read_at: string;
        };
        /** SlotDatabase */
        SlotDatabase: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Dbname */
            dbname: string;
            /**
             * Failure
             * @description Why it did not answer when it was last asked. Null: it did.
             */
            failure: string | null;
        };
        /** SlotEngine */
        SlotEngine: {
            /** Id */
            id: string;
            /** Name */
            name: string;
        };
        /**
         * SlotOwner
         * @description ORPHAN: it has the name of a stream's slot, and there is no such stream. UNKNOWN_STREAM: an engine has the
         *     stream, and the control plane does not know it.
         * @enum {string}
         */
        SlotOwner: "stream" | "unknown_stream" | "orphan" | "other";
        /**
         * SlotServer
         * @description One running server, read through the connection of one of its registered databases.
         */
        SlotServer: {
            /**
             * Address
             * @description host:port
             */
            address: string;
            /**
             * Other Addresses
             * @description Other spellings of its address, under which databases are registered: the same system identifier answers there, and the same start of the server.
             */
            other_addresses: string[];
            /**
             * Databases
             * @description The registered ones, sources of streams first.
             */
            databases: components["schemas"]["SlotDatabase"][];
            /**
             * Version
             * @description Such as 15.12. Null: it has never been read.
             */
            version: string | null;
            /** Asked At */
            asked_at: string | null;
            /**
             * Read At
             * @description When it last answered; what is shown dates from then.
             */
            read_at: string | null;
            /**
             * Failure
             * @description Why it did not answer when it was last asked. Null if any of its databases did.
             */
            failure: string | null;
            /**
             * Current Lsn
             * @description The end of its write-ahead log.
             */
            current_lsn: string | null;
            /**
             * Slots Max
             * @description max_replication_slots.
             */
            slots_max: number | null;
            /**
             * Keep Bytes
             * @description max_slot_wal_keep_size. Null: no limit, or never read.
             */
            keep_bytes: number | null;
            /** Slots */
            slots: components["schemas"]["ServerSlot"][];
        };
        /** SlotServers */
        SlotServers: {
            /** Servers */
            servers: components["schemas"]["SlotServer"][];
        };
        /** SlotStream */
        SlotStream: {
            /** Id */
            id: string;
            /** Name */
            name: string;
        };
        /** SourceColumn */
        SourceColumn: {
            /** Name */
            name: string;
            /**
             * Type
             * @description The type in PostgreSQL's words, such as `numeric(9,2)`.
             */
            type: string;
        };
        /** SourceColumns */
        SourceColumns: {
            /**
             * Columns
             * @description In the table's order. Without generated ones: their values are not captured.
             */
            columns: components["schemas"]["SourceColumn"][];
        };
        /** SourceTable */
        SourceTable: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            kind: components["schemas"]["TableKind"];
            /**
             * Rows Estimated
             * @description Null when the table was never analysed.
             */
            rows_estimated: number | null;
            /**
             * Bytes
             * @description Table, TOAST and indexes.
             */
            bytes: number;
            /**
             * Key Columns
             * @description The primary key's, else the replica identity index's.
             */
            key_columns: string[];
            replica_identity: components["schemas"]["ReplicaIdentity"];
            /**
             * Identified
             * @description Its rows can be identified. False: only its inserts and truncates can be replicated.
             */
            identified: boolean;
            /**
             * Inserts Only
             * @description The rules replicate only its inserts and truncates.
             */
            inserts_only: boolean;
            /** Replicable */
            replicable: boolean;
            /**
             * Unsupported
             * @description Why it cannot be replicated, in words. Empty when it can.
             */
            unsupported: string[];
            /**
             * Warnings
             * @description Warnings to read before replicating it.
             */
            warnings: string[];
        };
        /**
         * SslMode
         * @enum {string}
         */
        SslMode: "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full";
        /**
         * StatementHandler
         * @description A statement that the destination executes in the transaction of the change, as the stream's own user there.
         */
        StatementHandler: {
            /** @description `instead`: of each change, which is not made itself. `after`: behind each change. `precommit`: once for each transaction of the source that has changes, behind the last of them. `error`: in the place of each change that fails by its data. */
            when: components["schemas"]["HandlerMoment"];
            /**
             * Schema
             * @description With `table`.
             * @example public
             */
            schema?: string;
            /**
             * Table
             * @description The table whose changes these are, by its exact name in the stream. Omitted: any; `instead` has one, `precommit` none.
             * @example orders
             */
            table?: string;
            /**
             * Operations
             * @description Omitted: all. `precommit` has none.
             */
            operations?: components["schemas"]["RowOperation"][];
            /**
             * Errors
             * @description SQLSTATEs for `error`, the first two characters of one (its class), or codes (apply_conflict, apply_failed, initial_copy_inconsistent). Omitted: any error of a row's data.
             * @example [
             *       "23505"
             *     ]
             */
            errors?: string[];
            /**
             * Statement
             * @description One INSERT, UPDATE, DELETE, MERGE or SELECT, perhaps behind WITH. Values have names: `:new.column`, `:old.column`, `:operation`, `:schema`, `:table`, `:commit_time`, `:commit_lsn`, `:xid`; of `error` also `:sqlstate`, `:error`, `:constraint`, `:kind`. Names of objects need their schema: only pg_catalog is searched.
             * @example INSERT INTO audit.changes VALUES (:operation, :new.id, :commit_time)
             */
            statement: string;
        };
        /** StatisticName */
        StatisticName: {
            /**
             * Name
             * @description Send it as `statistic`.
             */
            name: string;
            /**
             * Component
             * @description The component's id, null when it is of the whole stream.
             */
            component: string | null;
            /** Unit */
            unit: string;
        };
        /**
         * StoredPem
         * @description A stored file, whose contents are not shown.
         */
        StoredPem: {
            /**
             * Subject
             * @description The certificate's subject, the revocation list's issuer; null of a key.
             */
            subject: string | null;
            /**
             * Expires At
             * @description When the certificate ends, or the next revocation list is due.
             */
            expires_at: string | null;
        };
        /** Stream */
        Stream: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            source: components["schemas"]["DatabaseRef"];
            capture_engine: components["schemas"]["EngineRef"];
            /** @description logical: the source decodes its WAL for the stream, and keeps it for as long as a destination is behind. wal: the engine receives the source's WAL, stages it on its own disk and mines it there; the source forgets what is staged. */
            capture_kind: components["schemas"]["CaptureKind"];
            /** Destinations */
            destinations: components["schemas"]["StreamDestination"][];
            mode: components["schemas"]["StreamMode"];
            desired_status: components["schemas"]["DesiredStatus"];
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for what it does, in the console and on the command line: its phase, or the state of a destination that is in trouble, the worst of several. PAUSED: all its destinations are. */
            state: components["schemas"]["ShownState"];
            /** Observed At */
            observed_at: string | null;
            health: components["schemas"]["Health"];
            error: components["schemas"]["StreamError"] | null;
            /** Retry At */
            retry_at: string | null;
            /**
             * Waits
             * @description The sessions that it waits for at a server while it starts or is deleted.
             */
            waits: components["schemas"]["StreamWait"][];
            /**
             * Lcrs Per Second
             * @description LCRs applied. With several destinations: LCRs captured, counted once; each destination has its own rate.
             */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            latency: components["schemas"]["LatencySample"];
            lag: components["schemas"]["Lag"];
            /** @description The stream's slot, as its source reports it. Null: it does not exist, or has not been read. */
            slot: components["schemas"]["Slot"] | null;
            /** Sampled At */
            sampled_at: string | null;
            /** Error Queue Transactions */
            error_queue_transactions: number | null;
            /** Table Count */
            table_count: number;
            /**
             * Rows Copied
             * @description Rows of the initial copy. Null when there was none.
             */
            rows_copied: number | null;
            /** Rows To Copy */
            rows_to_copy: number | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            /**
             * Etag
             * @description Send as If-Match when updating.
             */
            etag: string;
            /** @description A change of `capture_kind` that is under way. Null: there is none, or the stream does not run; then it comes with the next start. */
            kind_change: components["schemas"]["KindChange"] | null;
            /**
             * Reports
             * @description One report for each engine, the capturing one first. Empty if one engine does everything.
             */
            reports: components["schemas"]["StreamReport"][];
            rules: components["schemas"]["TableRules"];
            /**
             * Mask Key Set
             * @description There is a key of the masks `hash` and `digits`.
             */
            mask_key_set: boolean;
            /**
             * Mask Key Version
             * @description Another one after each change of that key, of which it tells nothing else. Null: there is no key.
             */
            mask_key_version: string | null;
            /**
             * Parameters
             * @description The parameters that were set.
             */
            parameters: {
                [key: string]: boolean | number | string | components["schemas"]["ErrorPolicy"][] | components["schemas"]["ConflictHandler"][] | components["schemas"]["ComparedTable"][] | components["schemas"]["StatementHandler"][];
            };
            /**
             * Effective Parameters
             * @description All parameters, including the defaults.
             */
            effective_parameters: {
                [key: string]: boolean | number | string | components["schemas"]["ErrorPolicy"][] | components["schemas"]["ConflictHandler"][] | components["schemas"]["ComparedTable"][] | components["schemas"]["StatementHandler"][];
            };
            /**
             * Restart Needed
             * @description A parameter was changed for which the engine starts the stream's components anew, and that is not done yet.
             */
            restart_needed: boolean;
            positions: components["schemas"]["Positions"] | null;
            /**
             * Tables
             * @description Changes at all destinations, added up.
             */
            tables: components["schemas"]["StreamTable"][];
            /** @description What the row rules have decided. Null: no table has rules, nothing is captured now, or the engine's version does not report it. */
            rule_counts: components["schemas"]["RuleCounts"] | null;
            /**
             * Actions
             * @description Actions possible now: start, stop, retry, delete, add_destination.
             */
            actions: string[];
        };
        /** StreamCreate */
        StreamCreate: {
            /** Name */
            name: string;
            /** Source Id */
            source_id: string;
            /**
             * Capture Engine Id
             * @description The engine that captures, ideally near the source. May be omitted if there is only one engine, or if the only destination names the one that does both.
             */
            capture_engine_id?: string | null;
            /**
             * Destinations
             * @description One or several. Several share one capture and one queue, and the source is decoded once for all.
             */
            destinations: components["schemas"]["DestinationCreate"][];
            rules: components["schemas"]["TableRules"];
            /**
             * @description logical: the source decodes its WAL for the stream, and keeps it for as long as a destination is behind. wal: the engine receives the source's WAL, stages it on its own disk and mines it there; the source forgets what is staged.
             * @default logical
             */
            capture_kind: components["schemas"]["CaptureKind"];
            /**
             * Parameters
             * @description By their names; error_policies is a list of ErrorPolicy, conflict_handlers one of ConflictHandler, conflict_detection one of ComparedTable, statement_handlers one of StatementHandler (only administrators may change it).
             */
            parameters?: {
                [key: string]: boolean | number | string | {
                    [key: string]: unknown;
                }[];
            };
            /**
             * Accept
             * @description The consents of checks that are accepted, as the preflight names them; or a check's id alone, to accept whatever that check says. Only admins may accept `carried_code`.
             */
            accept?: string[];
            /**
             * Start
             * @description False: create it stopped.
             * @default true
             */
            start: boolean;
            /**
             * Mask Key
             * @description The key of the masks `hash` and `digits`, which is kept as passwords are and never returned. Equal values become equal ones in all tables, and in all streams with the same key. At least 8 of its characters are different. Null: a key is made where a mask needs one.
             */
            mask_key?: string | null;
        };
        /**
         * StreamDeletedEvent
         * @description SSE event `stream.deleted`: the stream is gone.
         */
        StreamDeletedEvent: {
            /** Stream Id */
            stream_id: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /** StreamDestination */
        StreamDestination: {
            /**
             * Id
             * @description Unique in its stream.
             */
            id: string;
            database: components["schemas"]["DatabaseRef"];
            /** @description The engine that applies. */
            engine: components["schemas"]["EngineRef"];
            /** @description combined or propagation. */
            mode: components["schemas"]["StreamMode"];
            desired_status: components["schemas"]["DesiredStatus"];
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for what it does, in the console and on the command line: from its status, its phase and the two fields `parks_since` and `stalled_since`. */
            state: components["schemas"]["ShownState"];
            error: components["schemas"]["StreamError"] | null;
            /** Retry At */
            retry_at: string | null;
            /** Lcrs Per Second */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            latency: components["schemas"]["LatencySample"];
            lag: components["schemas"]["Lag"];
            /** @description Null: it has no backlog, as a stream's only destination. The source keeps WAL for it. */
            backlog: components["schemas"]["Backlog"] | null;
            /** Error Queue Transactions */
            error_queue_transactions: number | null;
            /**
             * Error Queue Oldest At
             * @description When the oldest of them was parked. Null: there is none, or it is not known yet.
             */
            error_queue_oldest_at: string | null;
            /**
             * Parks Since
             * @description Since when it has applied nothing and parked every transaction that came. Null: it does not.
             */
            parks_since: string | null;
            /**
             * Stalled Since
             * @description Since when it has applied nothing though changes wait for it. Null: for less than 15 s, or not at all.
             */
            stalled_since: string | null;
            /**
             * Retrying Transactions
             * @description Transactions that wait for a retry by an error policy.
             * @default 0
             */
            retrying_transactions: number;
            /** @description The first of their retries. */
            next_retry: components["schemas"]["TransactionRetry"] | null;
            /**
             * Rows Copied
             * @description Rows of the initial copy. Null when there was none.
             */
            rows_copied: number | null;
            /** Rows To Copy */
            rows_to_copy: number | null;
            /**
             * Actions
             * @description Actions possible now on this destination alone: start, stop, retry, drop. A stream's last destination cannot be dropped.
             */
            actions: string[];
            /**
             * Parameters
             * @description Overrides of the stream's parameters.
             */
            parameters: {
                [key: string]: boolean | number | string | components["schemas"]["ErrorPolicy"][] | components["schemas"]["ConflictHandler"][] | components["schemas"]["ComparedTable"][] | components["schemas"]["StatementHandler"][];
            };
            /**
             * Effective Parameters
             * @description All parameters, including the stream's and the defaults.
             */
            effective_parameters: {
                [key: string]: boolean | number | string | components["schemas"]["ErrorPolicy"][] | components["schemas"]["ConflictHandler"][] | components["schemas"]["ComparedTable"][] | components["schemas"]["StatementHandler"][];
            };
            /**
             * Row Rules
             * @description Row rules for this destination alone, beside the stream's.
             */
            row_rules: components["schemas"]["ScopedRules"][];
            /** @description What has become of the last change of its rules or parameters, or of the stream's. Null: the engine's version does not report it. */
            in_effect: components["schemas"]["InEffect"] | null;
            /** @description What these rules have decided since its changes began to be read. Null: it has none, nothing is read for it now, or the engine's version does not report it. */
            rule_counts: components["schemas"]["RuleCounts"] | null;
            /**
             * Applied
             * @description Everything that committed before this position at the source has been applied here.
             */
            applied: string | null;
            /**
             * Confirmed
             * @description The position that is durable here, or in its backlog on the engine's disk.
             */
            confirmed: string | null;
            instantiation: components["schemas"]["Instantiation"] | null;
            /**
             * Counted Since
             * @description When the counts of its tables' changes last began at 0, as they do whenever apply starts. Null: nothing is applied now, or the engine's version does not report it.
             */
            counted_since: string | null;
            /** Tables */
            tables: components["schemas"]["StreamTable"][];
        };
        /** StreamDrop */
        StreamDrop: {
            /**
             * Stream Id
             * @description One of the engine's unknown_streams.
             */
            stream_id: string;
        };
        /** StreamError */
        StreamError: {
            /** Code */
            code: string;
            /**
             * Class
             * @description transient, permanent, operator_action or corruption.
             */
            class: string;
            /** @description Where the trouble is: at the source, at the destination, on the link between two engines, or in the engine itself. Null where the engine cannot tell. */
            side: components["schemas"]["ErrorSide"] | null;
            /** Title */
            title: string;
            /**
             * Message
             * @description Without values of rows.
             */
            message: string;
            /**
             * Detail
             * @description What the engine says about the row: its key, values that do not fit. Only for operators, and for a stream requested by its id; null otherwise, and if `message` says everything.
             */
            detail: string | null;
            /** Cure */
            cure: string | null;
            /** Sqlstate */
            sqlstate: string | null;
            /** Table */
            table: string | null;
            /** Lsn */
            lsn: string | null;
            /** Xid */
            xid: number | null;
            /** At */
            at: string | null;
        };
        /**
         * StreamEvent
         * @description Something that happened to a stream, without the data that it was about.
         */
        StreamEvent: {
            /**
             * Id
             * @description Stable: it tells the event from all others.
             */
            id: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Until
             * @description When an alert was resolved. Null: it is open, or no alert.
             */
            until: string | null;
            /**
             * Kind
             * @description restart: the stream, one of its destinations or one of its engines was started or stopped.
             * @enum {string}
             */
            kind: "restart" | "change" | "alert";
            /**
             * Sentence
             * @example Stopped
             */
            sentence: string;
            /**
             * Actor Name
             * @description The user who did it. Null: nobody did.
             */
            actor_name: string | null;
            /** @description The severity of an alert. Null: no alert. */
            severity: components["schemas"]["AlertSeverity"] | null;
        };
        /** StreamHistory */
        StreamHistory: {
            /** Stream Id */
            stream_id: string;
            /**
             * Since
             * Format: date-time
             * @description The start of the first step.
             */
            since: string;
            /**
             * Until
             * Format: date-time
             * @description The end of the last step.
             */
            until: string;
            /** @description The resolution that the points are made from. */
            resolution: components["schemas"]["Resolution"];
            /** Step Seconds */
            step_seconds: number;
            /**
             * Times
             * @description The start of each step, in seconds since 1970 UTC: one for each point.
             */
            times: number[];
            /** Series */
            series: components["schemas"]["HistorySeries"][];
            /**
             * Outages
             * @description Outages that overlap the range, oldest first; at most 200.
             */
            outages: components["schemas"]["Outage"][];
        };
        /** StreamMarkers */
        StreamMarkers: {
            /** Stream Id */
            stream_id: string;
            /**
             * Markers
             * @description Newest first; engines remember the last 128.
             */
            markers: components["schemas"]["Marker"][];
        };
        /**
         * StreamMode
         * @description COMBINED: one engine captures and applies. PROPAGATION: one captures and sends, another receives and applies.
         *     FAN_OUT: one capture and one queue for several destinations, each with a backlog of its own.
         * @enum {string}
         */
        StreamMode: "combined" | "propagation" | "fan-out";
        /** StreamParameter */
        StreamParameter: {
            /** Name */
            name: string;
            /** Component */
            component: string;
            type: components["schemas"]["ParameterType"];
            /** Default */
            default: boolean | number | string | components["schemas"]["ErrorPolicy"][] | components["schemas"]["ConflictHandler"][] | components["schemas"]["ComparedTable"][] | components["schemas"]["StatementHandler"][];
            /** Minimum */
            minimum: number | null;
            /**
             * Maximum
             * @description The greatest number; the number of characters where it is a text.
             */
            maximum: number | null;
            /**
             * Values
             * @description The values of an enum.
             */
            values: string[] | null;
            /** Unit */
            unit: string | null;
            /**
             * Live
             * @description True: takes effect in the running components. False: the engine starts them anew for it, by itself.
             */
            live: boolean;
            /**
             * Per Destination
             * @description False: the destinations of a stream share it.
             */
            per_destination: boolean;
            /** Description */
            description: string;
        };
        /** StreamParameterList */
        StreamParameterList: {
            /** Parameters */
            parameters: components["schemas"]["StreamParameter"][];
        };
        /**
         * StreamPhase
         * @description UNKNOWN also while the engine does not answer.
         * @enum {string}
         */
        StreamPhase: "INITIALIZING" | "INSTANTIATING" | "CATCHING UP" | "REPLICATING" | "RETRYING" | "DRAINING" | "DROPPING" | "STOPPED" | "UNKNOWN";
        /**
         * StreamRates
         * @description Both lists have one entry for each of the last samples, oldest first.
         */
        StreamRates: {
            /** Stream Id */
            stream_id: string;
            /**
             * Times
             * @description Milliseconds since 1970 UTC.
             */
            times: number[];
            /** Lcrs Per Second */
            lcrs_per_second: (number | null)[];
        };
        /**
         * StreamReport
         * @description One engine's report on its part of the stream.
         */
        StreamReport: {
            /**
             * Destination Id
             * @description The destination that it receives for. Null: it captures.
             */
            destination_id: string | null;
            engine: components["schemas"]["EngineRef"];
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for what its part does. UNKNOWN: it does not answer. */
            state: components["schemas"]["ShownState"];
            error: components["schemas"]["StreamError"] | null;
            /** Retry At */
            retry_at: string | null;
            /** Observed At */
            observed_at: string | null;
        };
        /**
         * StreamStatusEvent
         * @description SSE event `stream.status`: what the collector observed has changed.
         */
        StreamStatusEvent: {
            /** Stream Id */
            stream_id: string;
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            health: components["schemas"]["Health"];
            /**
             * At
             * Format: date-time
             */
            at: string;
        };
        /**
         * StreamSummary
         * @description One line for each stream: what the overview and `thalweg status` show.
         */
        StreamSummary: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            source: components["schemas"]["DatabaseRef"];
            capture_engine: components["schemas"]["EngineRef"];
            /** @description logical: the source decodes its WAL for the stream, and keeps it for as long as a destination is behind. wal: the engine receives the source's WAL, stages it on its own disk and mines it there; the source forgets what is staged. */
            capture_kind: components["schemas"]["CaptureKind"];
            /** Destinations */
            destinations: components["schemas"]["DestinationSummary"][];
            mode: components["schemas"]["StreamMode"];
            desired_status: components["schemas"]["DesiredStatus"];
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** @description The one word for what it does, in the console and on the command line: its phase, or the state of a destination that is in trouble, the worst of several. PAUSED: all its destinations are. */
            state: components["schemas"]["ShownState"];
            /** Observed At */
            observed_at: string | null;
            health: components["schemas"]["Health"];
            error: components["schemas"]["StreamError"] | null;
            /** Retry At */
            retry_at: string | null;
            /**
             * Waits
             * @description The sessions that it waits for at a server while it starts or is deleted.
             */
            waits: components["schemas"]["StreamWait"][];
            /**
             * Lcrs Per Second
             * @description LCRs applied. With several destinations: LCRs captured, counted once; each destination has its own rate.
             */
            lcrs_per_second: number | null;
            /** Transactions Per Second */
            transactions_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            latency: components["schemas"]["LatencySample"];
            lag: components["schemas"]["Lag"];
            /** @description The stream's slot, as its source reports it. Null: it does not exist, or has not been read. */
            slot: components["schemas"]["Slot"] | null;
            /** Sampled At */
            sampled_at: string | null;
            /** Error Queue Transactions */
            error_queue_transactions: number | null;
            /** Table Count */
            table_count: number;
            /**
             * Rows Copied
             * @description Rows of the initial copy. Null when there was none.
             */
            rows_copied: number | null;
            /** Rows To Copy */
            rows_to_copy: number | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            /**
             * Etag
             * @description Send as If-Match when updating.
             */
            etag: string;
        };
        /** StreamTable */
        StreamTable: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            /** @description Its name at the destinations; that at the source, unless the stream's rules rename it. */
            destination_name: components["schemas"]["DestinationTableName"];
            /**
             * Inserts Only
             * @description Its updates and deletes are not replicated, so rows differ at the destination.
             */
            inserts_only: boolean;
            /**
             * Filtered
             * @description Rules of the table decide which of its rows and changes are replicated.
             */
            filtered: boolean;
            /** @description STOPPED: its changes are left out until it is copied again. */
            state: components["schemas"]["TableState"];
            /** @description Null as long as the table at the source is still the one that was copied. */
            trouble: components["schemas"]["TableTrouble"] | null;
            /** Inserts */
            inserts: number | null;
            /** Updates */
            updates: number | null;
            /** Deletes */
            deletes: number | null;
            /** Truncates */
            truncates: number | null;
            /**
             * Changes Per Second
             * @description Over the last half minute; null until that is known. Of several destinations: at the fastest.
             */
            changes_per_second: number | null;
            /** @description Since its apply started; null when there was none. Of several destinations: at the slowest. */
            last_change: components["schemas"]["LastChange"] | null;
        };
        /** StreamTransactions */
        StreamTransactions: {
            /** Stream Id */
            stream_id: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Transactions
             * @description The oldest first; the largest and oldest when there are many.
             */
            transactions: components["schemas"]["Transaction"][];
            /**
             * Open
             * @description The number of open transactions, including those that are not listed.
             */
            open: number;
            /** Waiting */
            waiting: number;
            /** Executing */
            executing: number;
            /**
             * Queued Lcrs
             * @description LCRs of complete transactions that are in no group yet.
             */
            queued_lcrs: number;
        };
        /** StreamUpdate */
        StreamUpdate: {
            /** Name */
            name?: string | null;
            /**
             * Parameters
             * @description Only the parameters to change. Null is not a value: send the default to restore it.
             */
            parameters?: {
                [key: string]: boolean | number | string | {
                    [key: string]: unknown;
                }[];
            } | null;
            /** @description The tables to replicate from now on. Added tables are copied; removed tables stay as they are at the destination. Sending the same rules again adds tables that were created in the meantime. */
            rules?: components["schemas"]["TableRules"] | null;
            /** @description logical: the source decodes its WAL for the stream, and keeps it for as long as a destination is behind. wal: the engine receives the source's WAL, stages it on its own disk and mines it there; the source forgets what is staged. The stream changes it at a position, while it runs and without a new copy; until then the former kind captures, and `kind_change` tells what it waits for. Null: it stays. */
            capture_kind?: components["schemas"]["CaptureKind"] | null;
            /**
             * Mask Key
             * @description The key of the masks `hash` and `digits`, which is kept as passwords are and never returned. Equal values become equal ones in all tables, and in all streams with the same key. At least 8 of its characters are different. Sent with the rules. Rows that a destination has stay as they are until their table is copied again. Null: it stays as it is, and is made where a mask needs one.
             */
            mask_key?: string | null;
            /**
             * Accept
             * @description The consents of checks that are accepted, as the preflight names them; or a check's id alone, to accept whatever that check says. Only admins may accept `carried_code`.
             */
            accept?: string[];
        };
        /**
         * StreamWait
         * @description A stream's start or removal that has waited at a server for several seconds.
         */
        StreamWait: {
            side: components["schemas"]["WaitSide"];
            /**
             * Destination Id
             * @description The destination that waits, if there are several.
             */
            destination_id: string | null;
            /**
             * Database
             * @description Its name in Thalweg.
             */
            database: string;
            /**
             * Statement
             * @description The beginning of the statement that waits.
             */
            statement: string;
            /**
             * Since
             * Format: date-time
             */
            since: string;
            /** Blockers */
            blockers: components["schemas"]["Blocker"][];
        };
        /**
         * SubjectType
         * @description The subject of an alert.
         * @enum {string}
         */
        SubjectType: "stream" | "engine" | "authority" | "token" | "store";
        /** TableCopy */
        TableCopy: {
            /**
             * Schema
             * @example public
             */
            schema: string;
            /**
             * Table
             * @example orders
             */
            table: string;
            /**
             * Reason
             * @description Why the table is copied again. The audit log keeps it: parked transactions may be discarded.
             */
            reason?: string | null;
        };
        /**
         * TableKind
         * @enum {string}
         */
        TableKind: "table" | "partitioned" | "partition" | "foreign" | "unlogged";
        /**
         * TableName
         * @enum {string}
         */
        TableName: "component" | "component_link" | "component_stat" | "database" | "path_bottleneck" | "path_stat";
        /**
         * TablePattern
         * @description Matches tables by the names of schema and table: `*` stands for any characters, `?` for one; case matters.
         */
        TablePattern: {
            /**
             * Schema
             * @example public
             */
            schema: string;
            /**
             * Table
             * @default *
             * @example orders_*
             */
            table: string;
        };
        /** TablePreview */
        TablePreview: {
            /** Tables */
            tables: components["schemas"]["SourceTable"][];
            /** Replicable */
            replicable: number;
            /** Bytes */
            bytes: number;
            /** Rows Estimated */
            rows_estimated: number | null;
            /**
             * Unmatched
             * @description Include patterns that match no table, as schema.table.
             */
            unmatched: string[];
        };
        /** TablePreviewRequest */
        TablePreviewRequest: {
            /** Source Id */
            source_id: string;
            rules: components["schemas"]["TableRules"];
        };
        /** TableProgress */
        TableProgress: {
            /** Schema */
            schema: string;
            /** Table */
            table: string;
            state: components["schemas"]["TableState"];
            /** Rows Estimated */
            rows_estimated: number | null;
            /** Rows Copied */
            rows_copied: number;
            /** Bytes Copied */
            bytes_copied: number;
            /** Ranges Total */
            ranges_total: number | null;
            /** Ranges Copied */
            ranges_copied: number | null;
            /**
             * Indexes Total
             * @description Keys, constraints, indexes and foreign keys that the engine makes.
             */
            indexes_total: number;
            /**
             * Indexes Built
             * @description How many of them are finished; one that is left out with a warning counts.
             */
            indexes_built: number;
            /**
             * Seconds
             * @description Spent on its rows.
             */
            seconds: number | null;
            /**
             * Rows Per Second
             * @description Null until something has been copied.
             */
            rows_per_second: number | null;
            /** Bytes Per Second */
            bytes_per_second: number | null;
            /**
             * Seconds Left
             * @description Until its rows are copied. Null while this cannot be estimated.
             */
            seconds_left: number | null;
        };
        /** TableRef */
        TableRef: {
            /**
             * Schema
             * @example public
             */
            schema: string;
            /**
             * Table
             * @example orders
             */
            table: string;
        };
        /**
         * TableRules
         * @description A stream's table rules: the tables that it replicates, and what becomes of their rows, columns and names. A table
         *     is replicated when an include pattern matches it and no exclude pattern does.
         */
        TableRules: {
            /** Include */
            include: components["schemas"]["TablePattern"][];
            /** Exclude */
            exclude?: components["schemas"]["TablePattern"][];
            /**
             * Inserts Only
             * @description Tables, by their exact names, of which only inserts and truncates are replicated; their updates and deletes stay at the source. This makes it possible to replicate a table whose rows nothing identifies.
             */
            inserts_only?: components["schemas"]["TableRef"][];
            /**
             * Row Rules
             * @description Which rows of tables are copied, and which changes captured. Changed rules apply to changes from then on; rows at the destination stay as they are until their table is copied again.
             */
            row_rules?: components["schemas"]["ScopedRules"][];
            /**
             * Transformations
             * @description Changes of columns, of tables by their exact names, made before changes leave the engine that captures, and while rows are copied. Rules see the source's columns.
             */
            transformations?: components["schemas"]["TableTransformations"][];
            /**
             * Renames
             * @description Names that tables have at the destinations, where those are others than at the source. Rules, transformations, policies and the stream's tables go by the source's names. Where a name is changed later, the destinations' tables are renamed.
             */
            renames?: components["schemas"]["Rename"][];
        };
        /**
         * TableState
         * @description In the order of a copy. UNKNOWN: the engine has not reported on the table, or does not answer. STOPPED: its
         *     changes are left out.
         * @enum {string}
         */
        TableState: "UNKNOWN" | "WAITING" | "COPYING" | "INDEXING" | "COPIED" | "REPLICATING" | "STOPPED";
        /** TableTransformations */
        TableTransformations: {
            /**
             * Schema
             * @description Its exact name.
             * @example public
             */
            schema: string;
            /**
             * Table
             * @description Its exact name.
             * @example customers
             */
            table: string;
            /**
             * Steps
             * @description Carried out in this order. A key can be renamed, but neither dropped nor masked.
             */
            steps: (components["schemas"]["DropColumn"] | components["schemas"]["RenameColumn"] | components["schemas"]["MaskColumn"] | components["schemas"]["KeepColumns"] | components["schemas"]["AddColumn"] | components["schemas"]["CastColumn"])[];
        };
        /** TableTrouble */
        TableTrouble: {
            kind: components["schemas"]["TroubleKind"];
            /** Reason */
            reason: string;
            /** Cure */
            cure: string;
            /**
             * Since
             * Format: date-time
             */
            since: string;
            /**
             * Sql
             * @description The cure's statements, one a line, to be run at the source; other ways to the same end are in `cure` alone. Null if none cures it, and from older engines.
             * @example ALTER TABLE "public"."orders" REPLICA IDENTITY FULL;
             */
            sql: string | null;
            /** @description Its name at the source now. */
            renamed_to: components["schemas"]["RenamedTable"] | null;
            /** Resolutions */
            resolutions: components["schemas"]["TroubleResolution"][];
        };
        /**
         * Thresholds
         * @description In percent. A component is a bottleneck only if idle and flow control do not exceed their thresholds.
         */
        Thresholds: {
            /**
             * Idle
             * @default 50
             */
            idle: number;
            /**
             * Flow Control
             * @default 50
             */
            flow_control: number;
            /**
             * Event
             * @default 15
             */
            event: number;
        };
        /**
         * Tie
         * @enum {string}
         */
        Tie: "discard" | "overwrite";
        /**
         * TimePercent
         * @description Share of the interval that a thread spent on each activity; the sum is 100.
         */
        TimePercent: {
            /** Busy */
            busy: number;
            /**
             * Idle
             * @description Waiting for input.
             */
            idle: number;
            /**
             * Flow Control
             * @description Held back because the next component is slower.
             */
            flow_control: number;
            /** Network */
            network: number;
            /** Execute */
            execute: number;
            /** Commit */
            commit: number;
            /** Dependency */
            dependency: number;
            /** Commit Order */
            commit_order: number;
            /** Lock */
            lock: number;
            /** Disk */
            disk: number;
        };
        /** Token */
        Token: {
            /** Id */
            id: string;
            /** User Id */
            user_id: string;
            /** User Name */
            user_name: string;
            /** Name */
            name: string;
            role: components["schemas"]["Role"];
            /**
             * Prefix
             * @description The first characters of the token, to tell tokens apart.
             */
            prefix: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Expires At */
            expires_at: string | null;
            /** Last Used At */
            last_used_at: string | null;
            /** Revoked At */
            revoked_at: string | null;
        };
        /** TokenCreate */
        TokenCreate: {
            /** Name */
            name: string;
            /**
             * @description The token's role, which cannot exceed your own. metrics: read /metrics.
             * @default viewer
             */
            role: components["schemas"]["Role"];
            /**
             * Expires In Days
             * @description Null: it never expires. Omitted: 90 days, or the remaining life of the token that creates it.
             * @default 90
             */
            expires_in_days: number | null;
        };
        /** TokenCreated */
        TokenCreated: {
            token: components["schemas"]["Token"];
            /**
             * Secret
             * @description The token itself. Shown only once: only its hash is stored.
             */
            secret: string;
        };
        /** Topology */
        Topology: {
            /** Nodes */
            nodes: components["schemas"]["TopologyNode"][];
            /** Edges */
            edges: components["schemas"]["TopologyEdge"][];
        };
        /** TopologyEdge */
        TopologyEdge: {
            /** Id */
            id: string;
            /** Source */
            source: string;
            /** Target */
            target: string;
            kind: components["schemas"]["EdgeKind"];
            /** @description combined, or propagation if the destination's path has one. Null on edges to and from databases. */
            mode: components["schemas"]["StreamMode"] | null;
            /** Stream Id */
            stream_id: string;
            /** Destination Id */
            destination_id: string | null;
            /** Lcrs Per Second */
            lcrs_per_second: number | null;
            /**
             * Backlog Bytes
             * @description On disk, before a destination that has a backlog; null elsewhere.
             */
            backlog_bytes: number | null;
        };
        /** TopologyNode */
        TopologyNode: {
            /**
             * Id
             * @description `database:<id>` or `<stream id>:<component>`.
             */
            id: string;
            kind: components["schemas"]["NodeKind"];
            /** Label */
            label: string;
            /**
             * State
             * @description The component's, while it works; else that of its engine, destination or stream, which says why it does not. Of a database: ONLINE, or UNREADABLE. Null: nothing is known.
             */
            state: string | null;
            /**
             * Reason
             * @description Why the database, or the engine, does not answer. Null elsewhere.
             */
            reason: string | null;
            /**
             * Destination Id
             * @description Its destination. Null: shared by all of the stream's destinations.
             */
            destination_id: string | null;
            /** Stream Id */
            stream_id: string | null;
            /** Engine Id */
            engine_id: string | null;
            /**
             * Engine
             * @description Its engine's name.
             */
            engine: string | null;
            /**
             * Engine State
             * @description ONLINE, UNREACHABLE, REFUSED.
             */
            engine_state: string | null;
            /** Database Id */
            database_id: string | null;
        };
        /**
         * Transaction
         * @description A transaction of the source that has not committed at the destination.
         */
        Transaction: {
            /**
             * Xid
             * @description At the source.
             */
            xid: number;
            state: components["schemas"]["TransactionState"];
            /**
             * First Lsn
             * @description The position of the first of its changes that arrived.
             */
            first_lsn: string | null;
            /**
             * Commit Lsn
             * @description Null while it is open.
             */
            commit_lsn: string | null;
            /**
             * Age Seconds
             * @description Since its first change arrived.
             */
            age_seconds: number;
            /** Lcrs */
            lcrs: number;
            /**
             * Bytes
             * @description The size of its LCRs.
             */
            bytes: number;
            /**
             * Spilled Bytes
             * @description Bytes of these on the engine's disk.
             */
            spilled_bytes: number;
            /**
             * Streamed
             * @description It arrived before its commit.
             */
            streamed: boolean;
            /**
             * Tables
             * @description Quoted, with their schema; 16 at most.
             */
            tables: string[];
            /**
             * Applier
             * @description The number of the applier that executes it.
             */
            applier: number | null;
            /** Waits For Xid */
            waits_for_xid: number | null;
            /**
             * Destination Id
             * @description Its destination, if there are several.
             */
            destination_id: string | null;
            /** Engine Id */
            engine_id: string;
            /** @description The retry that it waits for, with the error. Null also for those that wait with it in its group. */
            retry: components["schemas"]["TransactionRetry"] | null;
        };
        /**
         * TransactionRetry
         * @description A policy for its error has a transaction wait.
         */
        TransactionRetry: {
            /**
             * Number
             * @description The number of the retry, from 1.
             */
            number: number;
            /**
             * Times
             * @description The retries that there are at most.
             */
            times: number;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Code
             * @description The code of the error.
             */
            code: string;
            /** Sqlstate */
            sqlstate: string | null;
            /**
             * Table
             * @description Quoted, with its schema.
             */
            table: string | null;
            /**
             * Message
             * @description Without values of rows.
             */
            message: string;
            /**
             * Detail
             * @description What the engine says about the row. Only for operators; null otherwise, and if `message` says everything.
             */
            detail: string | null;
        };
        /**
         * TransactionState
         * @description OPEN: commit or abort has not arrived. WAIT_DEPENDENCY: another one must commit first. WAIT_RETRY: it failed and
         *     is retried later. READY: no applier is free, or its group still grows. EXECUTE_TRANSACTION: at the destination.
         *     WAIT_COMMIT: its turn has not come. UNKNOWN: only a newer engine knows it.
         * @enum {string}
         */
        TransactionState: "OPEN" | "WAIT DEPENDENCY" | "WAIT RETRY" | "READY" | "EXECUTE TRANSACTION" | "WAIT COMMIT" | "UNKNOWN";
        /**
         * TriedChange
         * @description Values are as PostgreSQL writes them, numbers, booleans or null; columns that are left out are NULL. A whole
         *     number of more than 64 bits is written as text.
         */
        TriedChange: {
            operation: components["schemas"]["RuledOperation"];
            /**
             * Old
             * @description The row before an UPDATE or DELETE.
             */
            old?: {
                [key: string]: string | boolean | number | null;
            } | null;
            /**
             * New
             * @description The row after an INSERT or UPDATE.
             */
            new?: {
                [key: string]: string | boolean | number | null;
            } | null;
            /**
             * Tag
             * @description The replication origin of its transaction. Null: none.
             */
            tag?: string | null;
            /**
             * Commit Time
             * @description When its transaction committed. Null: it has no commit time, as a copied row.
             */
            commit_time?: string | null;
        };
        /**
         * TroubleKind
         * @description The changes of a stream's table at the source.
         * @enum {string}
         */
        TroubleKind: "MISSING" | "DROPPED" | "REPLACED" | "RENAMED" | "UNPUBLISHED" | "PARTITIONS CHANGED" | "UNIDENTIFIED";
        /**
         * TroubleResolution
         * @description `copy`: delete the destination's rows and copy the source's again. `follow`: a rename, in the rules and at the
         *     destination. `remove`: take the table out of the stream. `accept`: the partitions are right as they are.
         * @enum {string}
         */
        TroubleResolution: "copy" | "follow" | "remove" | "accept";
        /**
         * Unit
         * @enum {string}
         */
        Unit: "MESSAGES PER SECOND" | "TRANSACTIONS PER SECOND" | "BYTES PER SECOND" | "PER SECOND" | "SECONDS" | "PERCENT" | "BYTES" | "NUMBER OF MESSAGES" | "NUMBER";
        /**
         * UnknownStream
         * @description A stream that the engine runs and the store does not know: the store was restored from a backup that is older
         *     than the stream.
         */
        UnknownStream: {
            /** Id */
            id: string;
            status: components["schemas"]["ObservedStatus"];
            phase: components["schemas"]["StreamPhase"];
            /** Being Dropped */
            being_dropped: boolean;
        };
        /** UnsearchableStream */
        UnsearchableStream: {
            /** Stream Id */
            stream_id: string;
            /** Stream Name */
            stream_name: string;
            /** Code */
            code: string;
            /** Message */
            message: string;
            /** Cure */
            cure: string | null;
        };
        /** User */
        User: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            role: components["schemas"]["UserRole"];
            /** Enabled */
            enabled: boolean;
            /**
             * Second Factor
             * @description Whether a login needs a code beside the password.
             */
            second_factor: boolean;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            /**
             * Etag
             * @description Send as If-Match when updating.
             */
            etag: string;
        };
        /** UserCreate */
        UserCreate: {
            /** Name */
            name: string;
            /** @default viewer */
            role: components["schemas"]["UserRole"];
            /** Password */
            password: string;
        };
        /**
         * UserRole
         * @description The roles of people.
         * @enum {string}
         */
        UserRole: "viewer" | "operator" | "admin";
        /** UserUpdate */
        UserUpdate: {
            /** Name */
            name?: string | null;
            role?: components["schemas"]["UserRole"] | null;
            /** Enabled */
            enabled?: boolean | null;
        };
        /**
         * Verdict
         * @description The limit of a path. Only BOTTLENECK names a component.
         * @enum {string}
         */
        Verdict: "BOTTLENECK" | "NO BOTTLENECK" | "PARKING" | "SOURCE IDLE" | "SOURCE DOWN" | "DESTINATION DOWN" | "LINK DOWN" | "ENGINE DOWN" | "ENGINE TROUBLE" | "STOPPED" | "PAUSED" | "ABORTED" | "COPYING" | "STARTING" | "WAITING" | "HELD UP" | "UNKNOWN";
        /**
         * WaitSide
         * @enum {string}
         */
        WaitSide: "source" | "destination";
        /** WebhookChannelCreate */
        WebhookChannelCreate: {
            /** Name */
            name: string;
            /**
             * Enabled
             * @default true
             */
            enabled: boolean;
            /**
             * @description Less severe alerts are not sent.
             * @default warning
             */
            min_severity: components["schemas"]["AlertSeverity"];
            /**
             * Send Resolved
             * @description Also send a notice when an alert is resolved.
             * @default true
             */
            send_resolved: boolean;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            kind: "webhook";
            settings: components["schemas"]["WebhookSettings"];
            /**
             * Secret
             * @description The key that signs each body. Never shown again.
             * @default
             */
            secret: string;
        };
        /** WebhookSettings */
        WebhookSettings: {
            /**
             * Url
             * @description Receives each notice by POST, as JSON. Redirects are not followed.
             */
            url: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    session_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    session_create: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    session_delete: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    session_verify_code: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: {
                thalweg_half_login?: string | null;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionCode"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_change_password: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordChange"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_get_second_factor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecondFactor"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_prepare_second_factor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecondFactorProof"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecondFactorDraft"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_confirm_second_factor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecondFactorCode"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecoveryCodes"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_renew_recovery_codes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecondFactorProof"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecoveryCodes"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_remove_second_factor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SecondFactorProof"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    users_reset_second_factor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    access_policy_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessPolicy"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    access_policy_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccessPolicyUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessPolicy"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    tokens_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    tokens_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenCreated"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    tokens_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatabasePage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DatabaseCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Database"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_test_unsaved: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DatabaseTestRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectionTest"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Database"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DatabaseUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Database"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_test: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectionTest"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_tables: {
        parameters: {
            query?: {
                /** @description Part of schema.table. */
                search?: string | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SourceTablePage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_columns: {
        parameters: {
            query: {
                /** @description The table's schema, exactly. */
                schema: string;
                /** @description Its exact name. */
                table: string;
            };
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SourceColumns"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    databases_preflight: {
        parameters: {
            query: {
                role: components["schemas"]["CheckSide"];
            };
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Preflight"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    engines_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EnginePage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    engines_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                engine_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Engine"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    engines_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                engine_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    engines_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                engine_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EngineUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Engine"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    engines_drop_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                engine_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamDrop"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Engine"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    enrolments_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EnrolmentCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Enrolment"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    engines_enrol: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EngineEnrol"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Engine"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_preview_tables: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TablePreviewRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TablePreview"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_check_rules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RulesCheckRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RulesCheck"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_test_rules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RulesTestRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RulesTest"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    preflights_run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreflightRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Preflight"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamSummaryPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stream"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_delete: {
        parameters: {
            query?: {
                /** @description Give up on what cannot be reached: a database, or an engine that is lost for good. When the engine has not answered for 30 s, the control plane itself removes what the stream created in both databases. The operation says what is left behind, with the SQL that removes it. */
                force?: boolean;
            };
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stream"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    destinations_add: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DestinationAdd"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    destinations_drop: {
        parameters: {
            query?: {
                /** @description Give up on a destination, or on the engine that applies there, if it cannot be reached. The operation says what is left behind, with the SQL that removes it. */
                force?: boolean;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    destinations_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DestinationUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stream"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_parameters_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamParameterList"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    overview_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    overview_rates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OverviewRates"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_start: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_stop: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_retry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    streams_samples: {
        parameters: {
            query?: {
                seconds?: number;
            };
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Samples"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    destinations_start: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    destinations_stop: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    destinations_retry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
                /** @description Leave out the transactions that wait behind another parked one. */
                roots_only?: boolean;
                /** @description Only the transactions with this cause: one of the list's. */
                cause?: string | null;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ParkedTransactions"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_get: {
        parameters: {
            query?: {
                /** @description Show the changes with higher numbers than this. */
                after?: number;
                /** @description How many changes are shown. */
                limit?: number;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ParkedContents"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_delete: {
        parameters: {
            query: {
                /** @description Why the two databases may differ from now on. The audit log keeps the reason with what was discarded. */
                reason: string;
                /** @description Discard it also if the audit log cannot keep all of its changes. */
                partly?: boolean;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_dependants: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ParkedTree"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_execute_all: {
        parameters: {
            query?: {
                /** @description Only the transactions with this cause: one of the list's. */
                cause?: string | null;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Execution"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecutionAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_execute: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Execution"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecutionAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_dry_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Execution"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_edit: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
                /** @description The change's number in the transaction. */
                number: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeEdit"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_errors_restore: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                stream_id: string;
                destination_id: string;
                error_id: number;
                /** @description The change's number in the transaction. */
                number: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_tables_copy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TableCopy"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationAccepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_tables_accept: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TableRef"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Accepted"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_tables_follow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TableRef"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stream"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_tables_remove: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TableRef"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stream"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_conflicts_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
                /** @description Only entries of this kind. */
                kind?: components["schemas"]["LoggedKind"] | null;
                /** @description With `table`. */
                schema?: string | null;
                /** @description Only this table's, by its exact name. */
                table?: string | null;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedChanges"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_conflicts_count: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConflictCounts"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_conflicts_export: {
        parameters: {
            query?: {
                format?: components["schemas"]["ExportFormat"];
                /** @description Only entries of this kind. */
                kind?: components["schemas"]["LoggedKind"] | null;
                /** @description With `table`. */
                schema?: string | null;
                /** @description Only this table's, by its exact name. */
                table?: string | null;
            };
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The log. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_conflicts_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                destination_id: string;
                conflict_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenedConflict"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    history_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["History"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_history_get: {
        parameters: {
            query?: {
                /** @description Names of statistics; `components.*.time_percent.busy` stands for one of every component, `destinations.*.latency.p99_ms` for one of every destination. The stream's rates, latency and lag when left out. At most 100 series are answered. */
                statistic?: string[] | null;
                /** @description Start of the range. If omitted: an hour before its end. */
                since?: string | null;
                /** @description End of the range, exclusive. If omitted: now. */
                until?: string | null;
                /** @description The maximum number of points. */
                points?: number;
            };
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamHistory"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_history_statistics: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryStatistics"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_history_events: {
        parameters: {
            query?: {
                /** @description Start of the range. If omitted: an hour before its end. */
                since?: string | null;
                /** @description End of the range, exclusive. If omitted: now. */
                until?: string | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamEventPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_history_samples: {
        parameters: {
            query?: {
                /** @description Start of the range. If omitted: an hour before its end. */
                since?: string | null;
                /** @description End of the range, exclusive. If omitted: now. */
                until?: string | null;
                /** @description The maximum number of samples, the newest of the range. */
                limit?: number;
            };
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistorySamples"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too many requests or failed logins */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_transactions_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamTransactions"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_markers_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamMarkers"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_markers_create: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MarkerCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Marker"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    stream_markers_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                stream_id: string;
                marker_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Marker"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    searches_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Searches"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    searches_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SearchCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Search"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    searches_export: {
        parameters: {
            query?: {
                format?: components["schemas"]["ExportFormat"];
            };
            header?: never;
            path: {
                database_id: string;
                search_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    searches_undo: {
        parameters: {
            query?: {
                /** @description Numbers of changes. None: all of them. */
                change?: number[] | null;
            };
            header?: never;
            path: {
                database_id: string;
                search_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description SQL. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/sql": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    searches_get: {
        parameters: {
            query?: {
                /** @description Changes with a higher number. */
                after?: number;
                /** @description Changes in one answer. */
                limit?: number;
                /** @description Values up to 64 KiB. Else they are cut at 1 KiB, and `undo` lacks what is cut. */
                whole?: boolean;
            };
            header?: never;
            path: {
                database_id: string;
                search_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResult"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    searches_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                database_id: string;
                search_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    changes_find: {
        parameters: {
            query?: {
                /** @description A time in ISO 8601 (UTC unless it says), or an LSN. */
                from?: string | null;
                /** @description A time in ISO 8601 (UTC unless it says), or an LSN. */
                to?: string | null;
                /** @description schema.table, quoted as in SQL if odd. */
                table?: string | null;
                /** @description COLUMN=VALUE, once for each column. With `table`. */
                key?: string[] | null;
                /** @description Only this transaction. */
                xid?: number | null;
                /** @description Changes at which it ends. */
                limit?: number;
                /** @description Seconds to wait for its end. */
                wait?: number;
            };
            header?: never;
            path: {
                database_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResult"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description The engine refused */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    operations_list: {
        parameters: {
            query?: {
                target_id?: string | null;
                /** @description Unique within its stream: give target_id as well. */
                destination_id?: string | null;
                state?: components["schemas"]["OperationState"] | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperationPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    operations_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    topology_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Topology"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    slots_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlotServers"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    slots_drop: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                database_id: string;
                slot_name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_analysis_get: {
        parameters: {
            query?: {
                /** @description Only this stream's paths. */
                stream_id?: string | null;
                /** @description Only paths through this component. */
                component_id?: string | null;
                window_seconds?: number;
                /** @description With time zone. */
                begin_at?: string | null;
                /** @description With time zone. */
                end_at?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LiveAnalysis"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_runs_list: {
        parameters: {
            query?: {
                /** @description Only this stream's paths. */
                stream_id?: string | null;
                reason?: components["schemas"]["RunReason"] | null;
                /** @description With time zone. */
                begin_at?: string | null;
                /** @description With time zone. */
                end_at?: string | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSummaryPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_runs_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_runs_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_runs_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_runs_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSummary"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_comparison_get: {
        parameters: {
            query: {
                /** @description A run's id. */
                before: number;
                /** @description A run's id. */
                after: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Comparison"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_components_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdvisorComponent"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_links_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdvisorLink"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_component_statistics_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComponentStatistic"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_databases_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdvisorDatabase"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_path_statistics_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PathStatistic"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_path_bottlenecks_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PathBottleneck"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_runs_report: {
        parameters: {
            query?: {
                format?: components["schemas"]["ReportFormat"];
                /** @description For CSV. */
                table?: components["schemas"]["TableName"];
            };
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "text/csv": string;
                    "text/html": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_run_findings_list: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Finding"][];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_schedules_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchedulePage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_schedules_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_schedules_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_schedules_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_schedules_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                schedule_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_policy_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_policy_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_cures_list: {
        parameters: {
            query?: {
                /** @description Only this stream's paths. */
                stream_id?: string | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedCurePage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_cures_apply: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CureApply"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedCure"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_cures_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                cure_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedCure"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    advisor_cures_undo: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                cure_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppliedCure"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alerts_list: {
        parameters: {
            query?: {
                state?: components["schemas"]["AlertFilter"];
                rule?: components["schemas"]["AlertRuleId"] | null;
                stream_id?: string | null;
                subject_id?: string | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alerts_count: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertCounts"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_rules_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertRules"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_rules_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                rule: components["schemas"]["AlertRuleId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertRuleSettings"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertRule"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_rules_update_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                rule: components["schemas"]["AlertRuleId"];
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertRuleSettings"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertRule"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_rules_delete_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                rule: components["schemas"]["AlertRuleId"];
                stream_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_silences_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertSilencePage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_silences_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertSilenceCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertSilence"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_silences_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                silence_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_channels_list: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertChannelPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_channels_create: {
        parameters: {
            query?: never;
            header?: {
                /** @description For one day, a request with the same key and body gets the first answer again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChannelCreate"] | components["schemas"]["EmailChannelCreate"] | components["schemas"]["LogChannelCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertChannel"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_channels_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                channel_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertChannel"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_channels_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                channel_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_channels_update: {
        parameters: {
            query?: never;
            header?: {
                /** @description `etag` of the resource as you read it; `*` to force. */
                "If-Match"?: string | null;
            };
            path: {
                channel_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertChannelUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertChannel"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Changed meanwhile */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description If-Match missing */
            428: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_channels_test: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                channel_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertDelivery"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_deliveries_list: {
        parameters: {
            query?: {
                channel_id?: string | null;
                alert_id?: number | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertDeliveryPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alert_deliveries_retry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                delivery_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertDelivery"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alerts_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                alert_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Alert"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alerts_acknowledge: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                alert_id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertAcknowledge"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Alert"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    alerts_unacknowledge: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                alert_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Alert"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    events_subscribe: {
        parameters: {
            query?: never;
            header?: {
                /** @description Resume after this event, as browsers do. */
                "Last-Event-ID"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events `hello`, `stream.sample` (Sample), `stream.status` (StreamStatusEvent), `operation` (OperationEvent), `engine` (EngineEvent), `stream.deleted` (StreamDeletedEvent), `alert` (AlertEvent), and `reset` when events may have been missed; data is JSON. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    audit_list: {
        parameters: {
            query?: {
                target_id?: string | null;
                /** @description Items per page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEntryPage"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    audit_changes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/x-ndjson": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    lab_get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lab"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    lab_load_change: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LabLoadUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lab"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    lab_causes_start: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                cause: components["schemas"]["CauseName"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LabCauseStart"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lab"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    lab_causes_stop: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                cause: components["schemas"]["CauseName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lab"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not found */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    lab_reset: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lab"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    health_live: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Healthz"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
    health_ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Service Unavailable */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    health_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Malformed request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not logged in */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not allowed */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not valid */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
            /** @description Not available now */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["ProblemDetails"];
                };
            };
        };
    };
}
