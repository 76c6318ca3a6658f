#pragma once

#include <string>

#include "pg/connection.h"

// Internal to pg/: whether a session is the engine's own, or one that a connection pooler gives to several clients.

namespace thalweg::pg {

// The mark of one session, which no other session has. It travels with the settings of the startup packet.
std::string new_session_mark();
// The setting that carries the mark, for the startup packet.
std::string session_mark_setting(const std::string& mark);

// connection_pooler: the mark is missing, or another session's, or statements reach different processes of the server.
// Something between may also give every session a login of its own and tell a process that is not the server's: two
// more looks, each a transaction of its own, then have to reach the same process.
base::Result<void> expect_own_session(Connection& connection, const std::string& mark);

}  // namespace thalweg::pg
