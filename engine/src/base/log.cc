#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace thalweg::base {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMask = "***";
constexpr std::array<std::string_view, 6> kSecretWords{"password", "passwd",   "secret",
                                                       "token",    "conninfo", "authorization"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool names_a_secret(std::string_view key) {
  const std::string name = lower(key);
  return std::ranges::any_of(kSecretWords, [&](auto word) { return name.find(word) != std::string::npos; });
}

std::string_view text_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string iso_time(int64_t unix_micros) {
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds{unix_micros}};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

Json header(int64_t unix_micros, LogLevel level, std::string_view event) {
  Json line;
  line["time"] = iso_time(unix_micros);
  line["level"] = text_of(level);
  line["event"] = event;
  return line;
}

void add_field(Json& line, const LogField& field) {
  Json& slot = line[std::string(field.key)];
  if (names_a_secret(field.key)) {
    slot = kMask;
    return;
  }
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string_view>) {
          slot = mask_passwords(value);
        } else {
          slot = value;
        }
      },
      field.value);
}

// Invalid UTF-8 (a message in a server's own encoding) becomes U+FFFD instead of an exception.
std::string dump(const Json& line) { return line.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string mask_passwords(std::string_view text) {
  constexpr std::string_view kKey = "password=";
  const std::string folded = lower(text);
  std::string out;
  size_t from = 0;
  for (size_t at = folded.find(kKey); at != std::string::npos; at = folded.find(kKey, from)) {
    const size_t value = at + kKey.size();
    out += text.substr(from, value - from);
    out += kMask;
    size_t end = value;
    if (end < text.size() && text[end] == '\'') {  // a quoted value ends at the next quote that is not escaped
      for (++end; end < text.size() && text[end] != '\''; ++end) {
        if (text[end] == '\\') ++end;
      }
      end = std::min(end + 1, text.size());
    } else {
      while (end < text.size() && text[end] != ' ' && text[end] != '&' && text[end] != '\n') {
        end += text[end] == '\\' ? 2 : 1;
      }
      end = std::min(end, text.size());
    }
    from = end;
  }
  out += text.substr(from);
  return out;
}

std::string format_log_line(int64_t unix_micros, LogLevel level, std::string_view event,
                            std::initializer_list<LogField> fields) {
  Json line = header(unix_micros, level, event);
  for (const LogField& field : fields) add_field(line, field);
  return dump(line);
}

Result<void> start_logging(LogLevel level, const std::string& path) {
  try {
    spdlog::sink_ptr sink;
    if (path.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    }
    auto logger = std::make_shared<spdlog::logger>("thalweg", std::move(sink));
    logger->set_pattern("%v");
    logger->set_level(spdlog_level(level));
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& exception) {
    return fail(ErrorCode::file_error, std::string("open the log: ") + exception.what());
  }
  return {};
}

void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (!logger->should_log(spdlog_level(level))) return;
  logger->log(spdlog_level(level), "{}", format_log_line(SystemClock().unix_now().value, level, event, fields));
}

void log_error(std::string_view event, const Error& error, std::initializer_list<LogField> fields) {
  Json line = header(SystemClock().unix_now().value, LogLevel::error, event);
  line["code"] = name_of(error.code);
  line["class"] = name_of(class_of(error.code));
  line["message"] = mask_passwords(error.message);
  if (!error.sqlstate.empty()) line["sqlstate"] = error.sqlstate;
  if (!error.table.empty()) line["table"] = error.table;
  if (error.lsn) line["lsn"] = to_string(error.lsn);
  if (error.xid) line["xid"] = error.xid.value;
  for (const LogField& field : fields) add_field(line, field);
  spdlog::default_logger_raw()->log(spdlog::level::err, "{}", dump(line));
}

}  // namespace thalweg::base
