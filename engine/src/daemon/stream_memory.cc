#include "daemon/stream_memory.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"

namespace thalweg::daemon {
namespace {

using nlohmann::json;
constexpr size_t kFileBytesMax = 1024 * 1024;

json to_json(const RememberedStatus& remembered) {
  json out = {
      {"status", names_of(remembered.state).status}, {"fingerprint", remembered.fingerprint}, {"error", nullptr}};
  if (remembered.error) {
    const base::Error& error = remembered.error->error;
    out["error"] = {{"code", base::name_of(error.code)},
                    {"message", error.message},
                    {"sqlstate", error.sqlstate},
                    {"table", error.table},
                    {"lsn", error.lsn.value},
                    {"xid", error.xid.value},
                    {"side", base::name_of(error.side)},
                    {"shows_rows", error.may_show_rows},
                    {"operation", base::name_of(error.operation)},
                    {"row_missing", error.is_row_missing},
                    {"retries", error.retries},
                    {"at", remembered.error->at.value}};
  }
  return out;
}

std::optional<control::ReportedError> error_from(const json& in) {
  const auto code = base::error_code_named(in.at("code").get<std::string>());
  if (!code) return std::nullopt;  // of another version
  const auto side = base::error_side_named(in.value("side", "unknown"));
  const auto operation = base::row_operation_named(in.value("operation", ""));
  return control::ReportedError{.error = {.code = *code,
                                          .message = in.at("message").get<std::string>(),
                                          .sqlstate = in.at("sqlstate").get<std::string>(),
                                          .table = in.at("table").get<std::string>(),
                                          .lsn = {in.at("lsn").get<uint64_t>()},
                                          .xid = {in.at("xid").get<uint32_t>()},
                                          .side = side.value_or(base::ErrorSide::unknown),
                                          .may_show_rows = in.value("shows_rows", false),
                                          .operation = operation.value_or(base::RowOperation::unknown),
                                          .is_row_missing = in.value("row_missing", false),
                                          .retries = in.value("retries", 0)},
                                .at = {in.at("at").get<int64_t>()}};
}

}  // namespace

StreamMemory::StreamMemory(std::filesystem::path folder, std::string stream_id)
    : path_(std::move(folder) / (stream_id + ".json")) {}

std::optional<RememberedStatus> StreamMemory::load() const {
  std::error_code missing;
  if (!std::filesystem::exists(path_, missing)) return std::nullopt;
  auto content = base::read_file(path_, kFileBytesMax);
  if (!content) {
    base::log_error("stream_memory_unreadable", content.error());
    return std::nullopt;
  }
  try {
    json in = json::parse(*content);
    const auto state = control::resting_state(in.at("status").get_ref<const std::string&>());
    RememberedStatus out{
        .state = state.value_or(State::aborted), .error = {}, .fingerprint = in.at("fingerprint").get<uint64_t>()};
    if (!in.at("error").is_null()) out.error = error_from(in.at("error"));
    return out;
  } catch (const json::exception& exception) {
    base::log_event(base::LogLevel::warning, "stream_memory_unreadable",
                    {{"file", path_.string()}, {"what", exception.what()}});
    return std::nullopt;
  }
}

base::Result<void> StreamMemory::store(const RememberedStatus& status) const {
  std::string text = to_json(status).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  return base::write_file_atomically(path_, text, 0600);
}

base::Result<void> StreamMemory::clear() const {
  std::error_code error;
  std::filesystem::remove(path_, error);
  if (error) return std::unexpected(base::file_error(error.value(), fmt::format("remove {}", path_.string())));
  return {};
}

}  // namespace thalweg::daemon
