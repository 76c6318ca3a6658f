#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

// Expected failures are values. Input from PostgreSQL, the disk or the network is never asserted.

namespace thalweg::base {

enum class ErrorClass {
  transient,        // tried again by itself, with growing delay
  permanent,        // the same try fails again; needs a decision
  operator_action,  // somebody must change something outside the engine
  corruption,       // bytes that cannot be right
};

// Where the trouble is.
enum class ErrorSide {
  unknown,
  source,
  destination,
  link,    // between two engines
  engine,  // in this one: its files, its port, what it is asked for
};

// Of the change of a row.
enum class RowOperation { unknown, insert, update, remove };

enum class ErrorCode {
#define THALWEG_ERROR(code, error_class, side, title, cure) code,
#include "base/error_catalogue.inc"
#undef THALWEG_ERROR
};

std::string_view name_of(ErrorCode code);
std::string_view name_of(ErrorClass error_class);
std::string_view name_of(ErrorSide side);
std::string_view name_of(RowOperation operation);  // INSERT, UPDATE or DELETE
std::optional<ErrorCode> error_code_named(std::string_view name);
std::optional<ErrorSide> error_side_named(std::string_view name);
std::optional<RowOperation> row_operation_named(std::string_view name);
ErrorClass class_of(ErrorCode code);
std::string_view title_of(ErrorCode code);
std::string_view cure_of(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // what happened here, in a sentence, with names and values; never a password
  // Context; empty or zero where it does not arise.
  std::string sqlstate;
  std::string table;  // schema-qualified, quoted where needed
  Lsn lsn;
  Xid xid;
  ErrorSide side = ErrorSide::unknown;             // where it arose, if its code leaves that open
  bool may_show_rows = false;                      // its message may quote values of rows: not for everybody
  RowOperation operation = RowOperation::unknown;  // of the change that failed, if it is of one row
  bool is_row_missing = false;                     // that change found no row at the destination
  int retries = 0;                                 // of the transaction, before this error ended them
};

// The message, or what viewers may read in its place.
std::string message_without_rows(const Error& error);
// Where it arose; else what its code says.
ErrorSide side_of(const Error& error);

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message, ErrorSide side = ErrorSide::unknown) {
  return std::unexpected(Error{
      .code = code, .message = std::move(message), .sqlstate = {}, .table = {}, .lsn = {}, .xid = {}, .side = side});
}

// Passes a failed Result on to the caller: THALWEG_TRY(use(x)); and THALWEG_ASSIGN(auto v, make());
#define THALWEG_CONCAT_INNER(a, b) a##b
#define THALWEG_CONCAT(a, b) THALWEG_CONCAT_INNER(a, b)
#define THALWEG_TRY(expression)                               \
  do {                                                        \
    if (auto try_result_ = (expression); !try_result_) {      \
      return std::unexpected(std::move(try_result_).error()); \
    }                                                         \
  } while (false)
#define THALWEG_ASSIGN(target, expression)                                               \
  auto THALWEG_CONCAT(assign_result_, __LINE__) = (expression);                          \
  if (!THALWEG_CONCAT(assign_result_, __LINE__)) {                                       \
    return std::unexpected(std::move(THALWEG_CONCAT(assign_result_, __LINE__)).error()); \
  }                                                                                      \
  target = std::move(*THALWEG_CONCAT(assign_result_, __LINE__))

}  // namespace thalweg::base
