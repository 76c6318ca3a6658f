#pragma once

#include <string>

#include "apply/applier/destination_session.h"
#include "apply/parked_set.h"
#include "apply/transaction.h"
#include "base/error.h"

// Puts a whole transaction into the destination's error queue.

namespace thalweg::apply {

// Within the transaction that the caller has begun; synced and checked on return.
base::Result<std::optional<StatementFailure>> park(DestinationSession& session, const std::string& stream_id,
                                                   const Transaction& transaction, const base::Error& why);

// All transactions that are parked for the stream; `count`: their number.
base::Result<ParkedSet> load_parked(pg::Connection& connection, const std::string& stream_id, uint64_t& count);

// Hashes as bytea holds them: 8 bytes each, network byte order.
std::vector<std::byte> encode_hashes(std::span<const uint64_t> hashes);
std::vector<uint64_t> decode_hashes_hex(std::string_view text);

}  // namespace thalweg::apply
