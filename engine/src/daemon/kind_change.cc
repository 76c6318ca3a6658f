#include "daemon/kind_change.h"

#include <fcntl.h>

#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"
#include "capture/logical/slot.h"
#include "capture/wal/wal_folder.h"
#include "daemon/backoff.h"
#include "daemon/source_objects.h"
#include "daemon/source_slot.h"
#include "pg/connection.h"
#include "pg/replication_stream.h"

namespace thalweg::daemon {
namespace {

using base::Lsn;
using control::CaptureKind;
using control::StreamDefinition;

constexpr std::chrono::seconds kSlotPatience{10};
constexpr int kFailoverVersion = 170'000;
constexpr const char* kPlugins = "{pgoutput,thalweg_output}";

struct FoundSlot {
  bool is_physical = false;
  bool keeps_wal = false;  // it has a position, and the WAL from there on
  Lsn confirmed_flush;     // none of a physical one
};

// Slots of the stream at its source.
struct FoundSlots {
  std::optional<FoundSlot> present;  // of its own name
  std::optional<FoundSlot> next;     // of a change
};

// The work of a change at the source, over one session.
class KindWork {
 public:
  KindWork(const StreamDefinition& desired, const DatabaseWork& work, const std::filesystem::path& folder)
      : desired_(desired),
        work_(work),
        own_(slot_name(desired.id)),
        next_(next_slot_name(desired.id)),
        mining_(mining_folder(folder)),
        next_mining_(next_mining_folder(folder)) {}

  base::Result<CaptureKind> settle();
  base::Result<Lsn> prepare();
  base::Result<void> change_over();

 private:
  base::Result<void> look();
  base::Result<bool> has_begun_mining(const std::filesystem::path& folder) const;
  base::Result<bool> is_switching();
  base::Result<void> finish();
  base::Result<void> copy_slot();
  base::Result<void> let_follow_failover();
  base::Result<void> drop(const std::string& slot);
  base::Result<Lsn> make_next();

  const StreamDefinition& desired_;
  const DatabaseWork& work_;
  const std::string own_;
  const std::string next_;
  const std::filesystem::path mining_;
  const std::filesystem::path next_mining_;
  std::optional<pg::Connection> source_;
  FoundSlots found_;
};

base::Result<void> remove_folder(const std::filesystem::path& folder) {
  std::error_code missing;
  if (!std::filesystem::exists(folder, missing)) return {};
  THALWEG_TRY(capture::WalFolder(folder).clear());
  std::error_code failed;
  std::filesystem::remove(folder, failed);
  if (failed) return std::unexpected(base::file_error(failed.value(), "remove " + folder.string()));
  return {};
}

// A rename in it.
base::Result<void> sync(const std::filesystem::path& folder) {
  THALWEG_ASSIGN(base::File opened, base::File::open(folder, O_RDONLY | O_DIRECTORY));
  return opened.sync();
}

base::Result<void> KindWork::look() {
  if (!source_) {
    THALWEG_TRY(work_.end_given_up(desired_.source.conninfo));
    THALWEG_ASSIGN(source_, connect(desired_.source.conninfo, desired_.id, work_));
  }
  THALWEG_ASSIGN(const pg::Rows rows,
                 source_->query("SELECT slot_name = $1, slot_type = 'physical', restart_lsn IS NOT NULL AND wal_status "
                                "IS DISTINCT FROM 'lost', confirmed_flush_lsn, slot_type = 'physical' OR (database = "
                                "pg_catalog.current_database() AND plugin = ANY ($3::text[])) "
                                "FROM pg_catalog.pg_replication_slots WHERE slot_name IN ($1, $2)",
                                {own_, next_, kPlugins}));
  found_ = {};
  for (size_t i = 0; i < rows.size(); ++i) {
    // Somebody else's of the next one's name is in the way when that is made, and nothing was dropped for it.
    if (!rows.boolean(i, 0) && !rows.boolean(i, 4)) continue;
    (rows.boolean(i, 0) ? found_.present : found_.next) =
        FoundSlot{.is_physical = rows.boolean(i, 1),
                  .keeps_wal = rows.boolean(i, 2),
                  .confirmed_flush = base::parse_lsn(rows.text(i, 3)).value_or(Lsn{})};
  }
  return {};
}

base::Result<bool> KindWork::has_begun_mining(const std::filesystem::path& folder) const {
  THALWEG_ASSIGN(const auto state, capture::WalFolder(folder).read_state());
  return state.has_value();
}

base::Result<void> KindWork::drop(const std::string& slot) {
  return capture::drop_slot(*source_, slot, capture::capture_application_name(desired_.id), kSlotPatience);
}

// Begun by change_over(): the slot of the present kind is gone, or what its WAL was mined to.
base::Result<bool> KindWork::is_switching() {
  if (!found_.next) return false;
  if (found_.next->is_physical) {
    if (found_.present && !found_.present->is_physical) return false;
    return has_begun_mining(next_mining_);
  }
  if (found_.present && !found_.present->is_physical) return true;
  THALWEG_ASSIGN(const bool mined, has_begun_mining(mining_));
  return !mined;
}

// A slot cannot be renamed.
base::Result<void> KindWork::copy_slot() {
  const bool is_physical = found_.next->is_physical;
  auto copied = source_->query(is_physical ? "SELECT pg_catalog.pg_copy_physical_replication_slot($1, $2)"
                                           : "SELECT pg_catalog.pg_copy_logical_replication_slot($1, $2)",
                               {next_, own_});
  if (copied) return {};
  if (copied.error().sqlstate == "53400") copied.error().code = base::ErrorCode::slot_limit_reached;
  return std::unexpected(std::move(copied).error());
}

// The copy of a slot does not have that of the slot (create_slot_sql).
base::Result<void> KindWork::let_follow_failover() {
  if (source_->server_version() < kFailoverVersion) return {};
  THALWEG_ASSIGN(pg::ReplicationStream stream,
                 pg::ReplicationStream::open(desired_.source.conninfo, capture_session(desired_, work_)));
  THALWEG_TRY(stream.connection().script(fmt::format("ALTER_REPLICATION_SLOT \"{}\" (FAILOVER true)", own_)));
  return {};
}

// Each step may be the last one before a crash; the next start finds what is left to do.
base::Result<void> KindWork::finish() {
  const bool to_mining = found_.next->is_physical;
  if (found_.present && (found_.present->is_physical != to_mining || !found_.present->keeps_wal)) {
    THALWEG_TRY(drop(own_));
    found_.present.reset();
  }
  if (!found_.present) THALWEG_TRY(copy_slot());
  if (to_mining) {
    THALWEG_TRY(remove_folder(mining_));
    std::error_code failed;
    std::filesystem::rename(next_mining_, mining_, failed);
    if (failed) return std::unexpected(base::file_error(failed.value(), "rename " + next_mining_.string()));
    THALWEG_TRY(sync(mining_.parent_path()));
  } else {
    THALWEG_TRY(let_follow_failover());
    THALWEG_TRY(remove_folder(mining_));
  }
  THALWEG_TRY(drop(next_));
  base::log_event(
      base::LogLevel::info, "capture_kind_changed",
      {{"stream", desired_.id}, {"to", control::name_of(to_mining ? CaptureKind::wal : CaptureKind::logical)}});
  return {};
}

base::Result<CaptureKind> KindWork::settle() {
  THALWEG_TRY(look());
  THALWEG_ASSIGN(const bool switching, is_switching());
  if (switching) {
    THALWEG_TRY(finish());
    THALWEG_TRY(look());
  }
  const auto kind_of = [](const FoundSlot& slot) { return slot.is_physical ? CaptureKind::wal : CaptureKind::logical; };
  // Somebody dropped it, a failover took it, or it was never made. A stream that mined keeps what it has, and its slot
  // is made good.
  CaptureKind present = desired_.capture_kind;
  if (found_.present) {
    present = kind_of(*found_.present);
  } else if (found_.next) {
    present = found_.next->is_physical ? CaptureKind::logical : CaptureKind::wal;
  } else {
    THALWEG_ASSIGN(const bool mined, has_begun_mining(mining_));
    if (mined) present = CaptureKind::wal;
  }
  // Withdrawn, or left by a crash once it had been copied.
  const bool is_left = found_.next && (present == desired_.capture_kind || kind_of(*found_.next) == present);
  if (is_left) {
    THALWEG_TRY(drop(next_));
    base::log_event(base::LogLevel::info, "capture_kind_kept",
                    {{"stream", desired_.id}, {"kind", control::name_of(present)}});
  }
  if (is_left || !found_.next) THALWEG_TRY(remove_folder(next_mining_));
  if (found_.present && present == CaptureKind::logical) THALWEG_TRY(remove_folder(mining_));
  return present;
}

base::Result<Lsn> KindWork::make_next() {
  THALWEG_ASSIGN(const capture::NewSlot made, make_slot(desired_, work_, next_, next_mining_));
  // A record behind the position, which an idle source would write much later.
  THALWEG_TRY(source_->script("SELECT pg_catalog.pg_logical_emit_message(true, 'thalweg', '')"));
  base::log_event(base::LogLevel::info, "capture_kind_prepared",
                  {{"stream", desired_.id},
                   {"to", control::name_of(desired_.capture_kind)},
                   {"position", base::to_string(made.slot.consistent_point)}});
  return made.slot.consistent_point;
}

// Where an earlier engine or session has prepared it, that goes on to be it.
base::Result<Lsn> KindWork::prepare() {
  THALWEG_TRY(look());
  if (found_.next) {
    if (found_.next->is_physical == mines(desired_) && found_.next->keeps_wal) {
      if (!mines(desired_)) return found_.next->confirmed_flush;
      THALWEG_ASSIGN(const auto state, capture::WalFolder(next_mining_).read_state());
      if (state) return state->started_at;
    }
    THALWEG_TRY(drop(next_));
  }
  return make_next();
}

base::Result<void> KindWork::change_over() {
  THALWEG_TRY(look());
  if (!found_.next || found_.next->is_physical != mines(desired_) || !found_.next->keeps_wal) return {};
  if (mines(desired_)) {
    THALWEG_ASSIGN(const bool begun, has_begun_mining(next_mining_));
    if (!begun) return {};
  } else {
    // From here on there is no way back: what was mined is given up.
    THALWEG_TRY(remove_folder(mining_));
  }
  return finish();
}

template <typename T>
base::Result<T> tidied(const StreamDefinition& desired, const DatabaseWork& work, base::Result<T> result) {
  if (!result && work.is_given_up()) log_undone(desired, work.end_given_up(desired.source.conninfo));
  return on_side("Source", desired.source.name, std::move(result));
}

}  // namespace

base::Result<CaptureKind> present_kind(const StreamDefinition& desired, const DatabaseWork& work,
                                       const std::filesystem::path& folder) {
  std::error_code missing;
  const bool may_differ = mines(desired) || std::filesystem::exists(mining_folder(folder), missing) ||
                          std::filesystem::exists(next_mining_folder(folder), missing);
  if (desired.receive_from || !may_differ) return desired.capture_kind;
  return tidied(desired, work, KindWork(desired, work, folder).settle());
}

base::Result<void> switch_kind(const StreamDefinition& desired, const DatabaseWork& work,
                               const std::filesystem::path& folder) {
  return tidied(desired, work, KindWork(desired, work, folder).change_over());
}

KindChange::KindChange(StreamDefinition desired, CaptureKind present, std::filesystem::path folder,
                       pg::SessionBoard* board)
    : desired_(std::move(desired)),
      withdraws_(desired_.capture_kind == present),
      folder_(std::move(folder)),
      board_(board),
      thread_([this] { run(); }) {}

KindChange::~KindChange() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

std::optional<Lsn> KindChange::position() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

std::optional<base::Error> KindChange::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

base::Result<std::optional<Lsn>> KindChange::try_once(const DatabaseWork& work) const {
  KindWork change(desired_, work, folder_);
  if (!withdraws_) return change.prepare();
  THALWEG_TRY(change.settle());
  return std::nullopt;
}

void KindChange::run() {
  const DatabaseWork work{.stop = &stop_, .board = board_};
  Backoff backoff(std::hash<std::string>{}(desired_.id));
  while (true) {
    auto done = tidied(desired_, work, try_once(work));
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (done) {
        position_ = *done;
        trouble_.reset();
        return;
      }
      base::Error error = std::move(done).error();
      base::log_error("capture_kind_not_prepared", error, {{"stream", desired_.id}});
      error.message = fmt::format("The change of capture_kind {}, and the stream goes on as it was. {}",
                                  withdraws_ ? "is being withdrawn" : "waits", error.message);
      trouble_ = std::move(error);
    }
    if (rest(backoff.next())) return;
  }
}

bool KindChange::rest(std::chrono::milliseconds delay) {
  std::unique_lock lock(mutex_);
  return stopped_.wait_for(lock, delay, [this] { return stop_.load(); });
}

}  // namespace thalweg::daemon
