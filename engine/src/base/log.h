#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"

// Structured logs: one JSON object per line, {"time","level","event",...fields}.

namespace thalweg::base {

enum class LogLevel { debug, info, warning, error };

using LogValue = std::variant<std::string_view, int64_t, uint64_t, double, bool>;

// A field's value. Text is kept as a pointer until the line is written.
struct LogField {
  std::string_view key;
  LogValue value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  template <std::signed_integral Integer>
  LogField(std::string_view k, Integer v) : key(k), value(static_cast<int64_t>(v)) {}
  template <std::unsigned_integral Integer>
    requires(!std::same_as<Integer, bool>)
  LogField(std::string_view k, Integer v) : key(k), value(static_cast<uint64_t>(v)) {}
};

// Sends lines of `level` and above to standard error, or to `path` (appended) when it is not empty. Call it once,
// before other threads log; without it, lines go where spdlog's default logger points.
Result<void> start_logging(LogLevel level, const std::string& path);

// Thread-safe: spdlog's sinks lock. Never on the hot path. `event` is a stable snake_case name, without values in it.
// Secrets do not belong into logs; as a second line of defence the value of a key that names one (password, token,
// secret, conninfo, authorization) is masked, and so is what follows "password=" in any text.
void log_event(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// The same with the error's code, class, message and context as fields.
void log_error(std::string_view event, const Error& error, std::initializer_list<LogField> fields = {});

// The line that log_event writes, without the newline.
std::string format_log_line(int64_t unix_micros, LogLevel level, std::string_view event,
                            std::initializer_list<LogField> fields);

// `text` with every "password=..." masked: for messages that quote a connection string.
std::string mask_passwords(std::string_view text);

}  // namespace thalweg::base
