#include "simulation/destination_session.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lcr/bytes.h"
#include "lcr/frame.h"
#include "simulation/transformations.h"
#include "simulation/verdict.h"

namespace thalweg::simulation {

namespace {

constexpr const char* kUniqueViolation = "23505";
constexpr const char* kDeadlock = "40P01";
constexpr const char* kCheckViolation = "23514";
constexpr Time kSlowCommitMax = 4 * kSecond;

std::string row_lock(int table, const std::string& key) { return fmt::format("r{}:{}", table, key); }
std::string unique_lock(int table, const std::string& value) { return fmt::format("u{}:{}", table, value); }
std::string table_lock(int table) { return fmt::format("t{}", table); }

bool has_all(const Row& row, const std::vector<std::pair<size_t, Value>>& compared) {
  return std::ranges::all_of(compared, [&](const auto& wanted) { return row[wanted.first] == wanted.second; });
}

// Values of a tuple; `came` is false for those that it leaves out.
Row read_tuple(lcr::TupleView tuple, std::vector<bool>& came) {
  std::vector<lcr::Value> values;
  tuple.read(values);
  Row row(values.size());
  came.assign(values.size(), true);
  for (size_t i = 0; i < values.size(); ++i) {
    came[i] = values[i].mark != lcr::ValueMark::unchanged;
    if (values[i].mark == lcr::ValueMark::binary || values[i].mark == lcr::ValueMark::text) {
      row[i] = std::string(reinterpret_cast<const char*>(values[i].bytes.data()), values[i].bytes.size());
    }
  }
  return row;
}

}  // namespace

DestinationSession::DestinationSession(Destination& destination, std::shared_ptr<Channel> channel)
    : Session(destination, std::move(channel)), destination_(destination) {}

DestinationSession::~DestinationSession() {
  destination_.locks().release(-channel().pid);  // advisory locks are the session's
}

void DestinationSession::set(const std::string& sql) {
  if (sql.find("synchronous_commit = off") != std::string::npos) synchronous_ = false;
}

void DestinationSession::change(std::function<void(DestinationState&)> redo,
                                std::function<void(DestinationState&)> undo) {
  redo(destination_.working());
  redo_.push_back(std::move(redo));
  undo_.push_back(std::move(undo));
}

Outcome DestinationSession::commit() {
  if (destination_.commits_slowly() && scheduler().chance(2)) {
    scheduler().sleep_until(scheduler().now() +
                            static_cast<Time>(scheduler().random(static_cast<uint64_t>(kSlowCommitMax))));
  }
  destination_.commit(redo_, synchronous_);
  redo_.clear();
  undo_.clear();
  refused_.clear();
  destination_.locks().release(channel().pid);
  return {};
}

void DestinationSession::roll_back_to(size_t changes) {
  while (undo_.size() > changes) {
    undo_.back()(destination_.working());
    undo_.pop_back();
  }
  redo_.resize(undo_.size());
}

void DestinationSession::roll_back() {
  roll_back_to(0);
  refused_.clear();
  destination_.locks().release(channel().pid);
}

void DestinationSession::replicate(const std::string& sql) { fail("the destination was asked to {}", sql); }

Outcome DestinationSession::execute(const std::string& sql, const Parameters& parameters) {
  must_not_leak(sql, "a statement at the destination");
  for (const Parameter& parameter : parameters) {
    if (parameter.bytes) must_not_leak(*parameter.bytes, "a parameter at the destination");
  }
  if (sql == "SELECT 1") return rows({{"1"}});
  bool known = true;
  if (Outcome outcome = progress_statement(sql, parameters, known); known) return outcome;
  known = true;
  if (Outcome outcome = error_queue_statement(sql, parameters, known); known) return outcome;
  known = true;
  if (Outcome outcome = conflict_statement(sql, parameters, known); known) return outcome;
  known = true;
  if (Outcome outcome = catalog_statement(sql, parameters, known); known) return outcome;
  if (sql.starts_with("SELECT thalweg_datalayer.apply_lcrs(")) return data_layer(parameters);
  if (sql.starts_with("TRUNCATE ")) return truncate(parse_table_names(sql.substr(9)));
  if (const auto statement = parse_row_statement(sql)) return row_statement(*statement, parameters);
  fail("the model of the destination does not know this statement: {}", sql);
  return error("42601", "unknown statement");
}

Outcome DestinationSession::lock(const std::string& name, Locks::Mode mode) {
  if (destination_.locks().acquire(channel().pid, name, mode)) return {};
  return error(kDeadlock, "deadlock detected");
}

// Rows without a key are locked all together, by whoever looks for one.
Outcome DestinationSession::lock_bag(int table, Locks::Mode mode) {
  return shapes()[static_cast<size_t>(table)].key >= 0 ? Outcome() : lock(fmt::format("k{}", table), mode);
}

Outcome DestinationSession::make(const Change& change_made) {
  if (!change_made.after.empty() && destination_.refuses(change_made.table, change_made.after)) {
    refused_.emplace_back(change_made.table, change_made.after);
    return error(kCheckViolation, "new row violates a check constraint");
  }
  Data& data = destination_.working().data;
  const auto table = static_cast<size_t>(change_made.table);
  Change back = change_made;
  std::swap(back.before, back.after);
  if (change_made.kind == Change::Kind::insert) back.kind = Change::Kind::remove;
  if (change_made.kind == Change::Kind::remove) back.kind = Change::Kind::insert;
  const Table old = change_made.kind == Change::Kind::truncate ? data[table] : Table{};
  if (!apply_change(data, change_made)) return error(kUniqueViolation, "duplicate key value");
  redo_.emplace_back([change_made](DestinationState& state) { apply_change(state.data, change_made); });
  undo_.emplace_back([back, old, table](DestinationState& state) {
    if (back.kind == Change::Kind::truncate) {
      state.data[table] = old;
    } else {
      apply_change(state.data, back);
    }
  });
  return affected(1);
}

Outcome DestinationSession::insert_row(int table, const Row& row) {
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  if (Outcome locked = lock(table_lock(table), Locks::Mode::shared); !locked.ok()) return locked;
  if (shape.key >= 0) {
    const auto key = static_cast<size_t>(shape.key);
    if (!row[key]) return error("23502", "null value in a key");
    if (Outcome locked = lock(row_lock(table, *row[key]), Locks::Mode::exclusive); !locked.ok()) return locked;
  }
  if (Outcome locked = lock_bag(table, Locks::Mode::shared); !locked.ok()) return locked;
  if (shape.unique >= 0 && row[static_cast<size_t>(shape.unique)]) {
    const std::string name = unique_lock(table, *row[static_cast<size_t>(shape.unique)]);
    if (Outcome locked = lock(name, Locks::Mode::exclusive); !locked.ok()) return locked;
  }
  return make({.kind = Change::Kind::insert, .table = table, .before = {}, .after = row});
}

Outcome DestinationSession::find_to_change(int table, const Row& key, std::optional<Row>& found) {
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  if (Outcome locked = lock(table_lock(table), Locks::Mode::shared); !locked.ok()) return locked;
  if (Outcome locked = lock_bag(table, Locks::Mode::exclusive); !locked.ok()) return locked;
  const auto& data = destination_.working().data[static_cast<size_t>(table)];
  if (shape.key < 0) {
    if (data.bag.contains(key)) found = key;
    return affected(0);
  }
  const std::string& name = *key[static_cast<size_t>(shape.key)];
  if (Outcome locked = lock(row_lock(table, name), Locks::Mode::exclusive); !locked.ok()) return locked;
  if (const auto row = data.rows.find(name); row != data.rows.end()) found = row->second;
  return affected(0);
}

Outcome DestinationSession::update_row(int table, const Row& key, const Row& values, const std::vector<bool>& came,
                                       const Compared& compared) {
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  std::optional<Row> found;
  if (Outcome locked = find_to_change(table, key, found); !locked.ok()) return locked;
  if (!found || !has_all(*found, compared)) return affected(0);
  const Row& before = *found;
  Row after = before;
  for (size_t i = 0; i < after.size(); ++i) {
    if (came[i]) after[i] = values[i];
  }
  const bool moves = shape.key >= 0 && after[static_cast<size_t>(shape.key)] != before[static_cast<size_t>(shape.key)];
  if (moves) {
    const std::string name = row_lock(table, *after[static_cast<size_t>(shape.key)]);
    if (Outcome locked = lock(name, Locks::Mode::exclusive); !locked.ok()) return locked;
  }
  if (shape.unique >= 0 &&
      (moves || after[static_cast<size_t>(shape.unique)] != before[static_cast<size_t>(shape.unique)])) {
    for (const Row* row : {&before, static_cast<const Row*>(&after)}) {
      const Value& value = (*row)[static_cast<size_t>(shape.unique)];
      if (!value) continue;
      if (Outcome locked = lock(unique_lock(table, *value), Locks::Mode::exclusive); !locked.ok()) return locked;
    }
  }
  return make({.kind = Change::Kind::update, .table = table, .before = before, .after = after});
}

Outcome DestinationSession::remove_row(int table, const Row& key, const Compared& compared) {
  const TableShape& shape = shapes()[static_cast<size_t>(table)];
  std::optional<Row> found;
  if (Outcome locked = find_to_change(table, key, found); !locked.ok()) return locked;
  if (!found || !has_all(*found, compared)) return affected(0);
  const Row& before = *found;
  if (shape.key >= 0 && shape.unique >= 0 && before[static_cast<size_t>(shape.unique)]) {
    const std::string name = unique_lock(table, *before[static_cast<size_t>(shape.unique)]);
    if (Outcome locked = lock(name, Locks::Mode::exclusive); !locked.ok()) return locked;
  }
  return make({.kind = Change::Kind::remove, .table = table, .before = before, .after = {}});
}

Outcome DestinationSession::truncate(const std::vector<std::string>& tables) {
  for (const std::string& name : tables) {
    const int table = table_by_name(name);
    if (table < 0) return error("42P01", "no table " + name);
    if (Outcome locked = lock(table_lock(table), Locks::Mode::exclusive); !locked.ok()) return locked;
    if (Outcome made = make({.kind = Change::Kind::truncate, .table = table, .before = {}, .after = {}}); !made.ok())
      return made;
  }
  return affected(0);
}

Outcome DestinationSession::row_statement(const RowStatement& statement, const Parameters& parameters) {
  const size_t columns = shapes()[static_cast<size_t>(statement.table)].columns.size();
  std::vector<std::vector<Value>> arrays;
  size_t count = 1;
  if (statement.is_set) {
    for (const Parameter& parameter : parameters) {
      auto array = parse_array(*parameter.bytes);
      if (!array) return error("22P03", "no array");
      arrays.push_back(std::move(*array));
    }
    count = arrays.front().size();
  }
  const auto value = [&](size_t parameter, size_t row) {
    return statement.is_set ? arrays[parameter][row] : parameters[parameter].bytes;
  };
  uint64_t touched = 0;
  for (size_t row = 0; row < count; ++row) {
    Row values(columns);
    Row key(columns);
    std::vector<bool> came(columns, false);
    for (const auto& [column, parameter] : statement.values) {
      values[column] = value(parameter, row);
      came[column] = true;
    }
    for (const auto& [column, parameter] : statement.key) key[column] = value(parameter, row);
    Compared compared;
    for (const auto& [column, parameter] : statement.compared) compared.emplace_back(column, value(parameter, row));
    Outcome outcome = statement.kind == RowStatement::Kind::insert ? insert_row(statement.table, values)
                      : statement.kind == RowStatement::Kind::update
                          ? update_row(statement.table, key, values, came, compared)
                          : remove_row(statement.table, key, compared);
    if (!outcome.ok()) return outcome;
    touched += outcome.affected;
  }
  if (statement.checked && touched != 1) return error("22012", "division by zero");
  return affected(touched);
}

// docs/formats/data-layer-call.md
Outcome DestinationSession::data_layer(const Parameters& parameters) {
  lcr::ByteReader reader(std::as_bytes(std::span(*parameters[0].bytes)));
  if (reader.integer<uint8_t>() != 1) return error("TW001", "another version");
  constexpr int kProgress = -1;
  bool fenced = false;
  std::map<std::pair<uint32_t, uint32_t>, int> tables;
  for (auto count = reader.integer<uint16_t>(); count > 0; --count) {
    const auto relation = reader.integer<uint32_t>();
    const auto version = reader.integer<uint32_t>();
    const auto oid = reader.integer<uint32_t>();
    const auto index = reader.integer<uint32_t>();
    const auto columns = reader.integer<uint16_t>();
    for (uint16_t i = 0; i < columns; ++i) {
      if (reader.integer<int16_t>() != static_cast<int16_t>(i + 1)) return error("TW001", "columns out of order");
    }
    for (size_t i = 0; i < shapes().size(); ++i) {
      if (shapes()[i].destination_oid() == oid) tables[{relation, version}] = static_cast<int>(i);
    }
    if (oid == kProgressOid) {
      tables[{relation, version}] = kProgress;
      fenced = index == kProgressEpochIndex;
    }
  }
  const std::string& bytes = *parameters[1].bytes;
  std::vector<uint64_t> aligned(bytes.size() / 8 + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto* at = reinterpret_cast<const std::byte*>(aligned.data());
  const auto* const end = at + bytes.size();
  uint64_t count = 0;
  while (at < end) {
    const auto frame = lcr::FrameView::trusted(at);
    at += frame.header().length;
    const auto table = tables.find({frame.header().relation, frame.header().table_version});
    if (reader.failed() || table == tables.end()) return error("TW001", "a frame of no table");
    std::vector<bool> came;
    Outcome outcome;
    const auto whole = [&](const Row& row) {
      return whole_row(shapes_there()[static_cast<size_t>(table->second)], row);
    };
    if (table->second == kProgress) {
      outcome = write_progress(frame, fenced);
    } else if (frame.kind() == lcr::FrameKind::insert) {
      outcome = insert_row(table->second, whole(read_tuple(frame.new_tuple(), came)));
    } else if (frame.kind() == lcr::FrameKind::remove) {
      outcome = remove_row(table->second, whole(read_tuple(frame.old_tuple(), came)));
    } else {
      const Row values = whole(read_tuple(frame.new_tuple(), came));
      std::vector<bool> came_whole(values.size(), true);
      for (size_t i = 0, sent = 0; i < values.size(); ++i) {
        if (!shapes_there()[static_cast<size_t>(table->second)].columns[i].is_gone) came_whole[i] = came[sent++];
      }
      came = came_whole;
      std::vector<bool> unused;
      const Row key = frame.old_tuple().exists() ? whole(read_tuple(frame.old_tuple(), unused)) : values;
      outcome = update_row(table->second, key, values, came);
    }
    if (outcome.ok() && outcome.affected == 0) return error("TW002", "the row to change is not there");
    if (!outcome.ok()) return outcome;
    ++count;
  }
  return rows({{std::to_string(count)}});
}

// COPY "public"."account" ("id", ...) FROM STDIN (FORMAT binary)
Outcome DestinationSession::copy_in(const std::string& sql, const std::string& bytes) {
  must_not_leak(bytes, "a COPY at the destination");
  const auto names = parse_table_names(sql.substr(5));
  const int table = names.empty() ? -1 : table_by_name(names.front());
  constexpr size_t kHeaderBytes = 19;
  lcr::ByteReader reader(std::as_bytes(std::span(bytes)));
  reader.take(kHeaderBytes);
  uint64_t count = 0;
  while (!reader.failed() && table >= 0) {
    const auto columns = reader.integer<int16_t>();
    if (columns == -1) return affected(count);
    Row row;
    for (int16_t i = 0; i < columns; ++i) {
      const auto length = reader.integer<int32_t>();
      row.emplace_back(length < 0 ? Value() : Value(std::string(reader.text(static_cast<size_t>(length)))));
    }
    if (reader.failed()) break;
    const Row whole = whole_row(shapes_there()[static_cast<size_t>(table)], row);
    if (Outcome outcome = insert_row(table, whole); !outcome.ok()) return outcome;
    ++count;
  }
  fail("the model of the destination does not know this COPY: {}", sql);
  return error("22P04", "bad copy data");
}

}  // namespace thalweg::simulation
