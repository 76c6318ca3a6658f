#include "rules/parser.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "rules/lexer.h"
#include "rules/type_names.h"

// Precedence climbing over PostgreSQL's table of precedences (its manual, "Operator Precedence").

namespace thalweg::rules {

namespace {

enum Level : int {
  kOr = 1,
  kAnd,
  kNot,
  kIs,
  kComparison,
  kBetween,  // BETWEEN, IN, LIKE, ILIKE
  kOther,    // any other operator
  kAdd,
  kMultiply,
  kPower,
  kCollate,
  kSign,
  kCast,
};

constexpr std::array kAttributes{"schema", "table", "operation", "tag", "source", "commit_time"};
// Words that are no column unless they are quoted.
constexpr std::array kReserved{"all",       "and",     "any",   "array",   "as",     "asc",      "between",
                               "case",      "cast",    "check", "collate", "desc",   "distinct", "else",
                               "end",       "from",    "ilike", "in",      "is",     "isnull",   "like",
                               "not",       "notnull", "null",  "or",      "select", "similar",  "some",
                               "symmetric", "then",    "to",    "using",   "when",   "where",    "with"};

bool one_of(std::string_view word, const auto& words) { return std::ranges::find(words, word) != words.end(); }

Expression node(Syntax kind, uint32_t offset, std::vector<Expression> arguments = {}, std::string text = {}) {
  Expression made{.kind = kind, .offset = offset, .text = std::move(text), .modifiers = {}, .arguments = {}};
  for (const Expression& argument : arguments) made.height = std::max(made.height, argument.height + 1);
  made.arguments = std::move(arguments);
  return made;
}

std::vector<Expression> list(Expression first) {
  std::vector<Expression> made;
  made.push_back(std::move(first));
  return made;
}
std::vector<Expression> list(Expression first, Expression second) {
  auto made = list(std::move(first));
  made.push_back(std::move(second));
  return made;
}

// Owner: one call of parse.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Ruled<Expression> whole() {
    RULES_ASSIGN(expression, parse_from(0));
    if (now().kind != TokenKind::end) return unexpected_token();
    return expression;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(size_t tokens) const { return tokens_[std::min(at_ + tokens, tokens_.size() - 1)]; }
  bool is_word(std::string_view text) const { return now().kind == TokenKind::word && now().text == text; }
  bool is_mark(std::string_view text) const { return now().kind == TokenKind::punctuation && now().text == text; }
  bool take_word(std::string_view text) { return is_word(text) && (++at_, true); }
  bool take_mark(std::string_view text) { return is_mark(text) && (++at_, true); }
  std::unexpected<RuleError> unexpected_token() const {
    if (now().kind == TokenKind::end) return refuse("the condition ends too early", now().offset);
    return refuse("'" + now().text + "' does not fit here", now().offset);
  }
  Ruled<void> expect_word(std::string_view text) {
    if (!take_word(text)) return refuse("expected " + std::string(text) + " here", now().offset);
    return {};
  }
  Ruled<void> expect_mark(std::string_view text) {
    if (!take_mark(text)) return refuse("expected '" + std::string(text) + "' here", now().offset);
    return {};
  }

  // An expression of operators that bind at least as tightly as `level`.
  Ruled<Expression> parse_from(int level) {
    if (++depth_ > kNestingMax) {
      return refuse("the condition nests deeper than " + std::to_string(kNestingMax) + " levels", now().offset);
    }
    auto parsed = parse_prefix();
    while (parsed) {
      const auto binding = level_of_infix();
      if (!binding || *binding < level) break;
      parsed = parse_infix(std::move(*parsed), *binding);
      if (parsed && parsed->height > kNestingMax) {
        return refuse("the condition nests deeper than " + std::to_string(kNestingMax) + " levels", parsed->offset);
      }
    }
    --depth_;
    return parsed;
  }

  std::optional<int> level_of_infix() const {
    const Token& token = now();
    if (token.kind == TokenKind::punctuation && token.text == "::") return kCast;
    if (token.kind == TokenKind::op) {
      if (one_of(token.text, std::array{"<", ">", "=", "<=", ">=", "<>"})) return kComparison;
      if (token.text == "+" || token.text == "-") return kAdd;
      if (token.text == "*" || token.text == "/" || token.text == "%") return kMultiply;
      if (token.text == "^") return kPower;
      return kOther;
    }
    if (token.kind != TokenKind::word) return std::nullopt;
    if (token.text == "or") return kOr;
    if (token.text == "and") return kAnd;
    if (token.text == "is" || token.text == "isnull" || token.text == "notnull") return kIs;
    if (token.text == "collate") return kCollate;
    if (one_of(token.text, std::array{"between", "in", "like", "ilike"})) return kBetween;
    if (token.text == "not" && one_of(ahead(1).text, std::array{"between", "in", "like", "ilike"})) return kBetween;
    return std::nullopt;
  }

  Ruled<Expression> parse_infix(Expression left, int level) {
    const Token token = now();
    ++at_;
    switch (level) {
      case kOr:
      case kAnd:
        return parse_logical(std::move(left), level == kOr ? Syntax::any : Syntax::all, level, token.offset);
      case kIs:
        return parse_is(std::move(left), token);
      case kBetween:
        return parse_between(std::move(left), token);
      case kCollate: {
        if (now().kind != TokenKind::quoted && now().kind != TokenKind::word) return unexpected_token();
        std::string name = now().text;
        ++at_;
        return node(Syntax::collate, token.offset, list(std::move(left)), std::move(name));
      }
      case kCast:
        return parse_cast_to(std::move(left), token.offset);
      default:
        break;
    }
    RULES_ASSIGN(right, parse_from(level + 1));
    if (level == kComparison && level_of_infix() == kComparison) return unexpected_token();
    return node(Syntax::binary, token.offset, list(std::move(left), std::move(right)), token.text);
  }

  // AND and OR have any number of arguments: a long list does not nest.
  Ruled<Expression> parse_logical(Expression left, Syntax kind, int level, uint32_t offset) {
    std::vector<Expression> arguments = list(std::move(left));
    do {
      RULES_ASSIGN(right, parse_from(level + 1));
      arguments.push_back(std::move(right));
    } while (take_word(level == kOr ? "or" : "and"));
    return node(kind, offset, std::move(arguments));
  }

  Ruled<Expression> parse_is(Expression left, const Token& token) {
    if (token.text == "isnull") return node(Syntax::is_null, token.offset, list(std::move(left)));
    bool negated = token.text == "notnull";
    Syntax kind = Syntax::is_null;
    if (!negated) {
      negated = take_word("not");
      if (take_word("null")) {
        kind = Syntax::is_null;
      } else if (take_word("true")) {
        kind = Syntax::is_true;
      } else if (take_word("false")) {
        kind = Syntax::is_false;
      } else if (take_word("unknown")) {
        kind = Syntax::is_unknown;
      } else if (take_word("distinct")) {
        RULES_TRY(expect_word("from"));
        RULES_ASSIGN(right, parse_from(kComparison));
        Expression made = node(Syntax::distinct, token.offset, list(std::move(left), std::move(right)));
        made.negated = negated;
        return made;
      } else {
        return unexpected_token();
      }
    }
    Expression made = node(kind, token.offset, list(std::move(left)));
    made.negated = negated;
    return made;
  }

  Ruled<Expression> parse_between(Expression left, const Token& token) {
    const bool negated = token.text == "not";
    const std::string word = negated ? now().text : token.text;
    if (negated) ++at_;
    if (word == "like" || word == "ilike") {
      RULES_ASSIGN(pattern, parse_from(kOther));
      if (take_word("escape")) {
        RULES_ASSIGN(escape, parse_from(kOther));
        pattern = node(Syntax::function, token.offset, list(std::move(pattern), std::move(escape)), "like_escape");
      }
      return node(Syntax::binary, token.offset, list(std::move(left), std::move(pattern)),
                  std::string(negated ? "!~~" : "~~") + (word == "ilike" ? "*" : ""));
    }
    std::vector<Expression> arguments = list(std::move(left));
    Syntax kind = Syntax::in;
    if (word == "in") {
      RULES_TRY(expect_mark("("));
      do {
        RULES_ASSIGN(item, parse_from(0));
        arguments.push_back(std::move(item));
      } while (take_mark(","));
      RULES_TRY(expect_mark(")"));
    } else {
      kind = take_word("symmetric") ? Syntax::symmetric : Syntax::between;
      RULES_ASSIGN(low, parse_from(kOther));
      RULES_TRY(expect_word("and"));
      RULES_ASSIGN(high, parse_from(kOther));
      arguments.push_back(std::move(low));
      arguments.push_back(std::move(high));
    }
    Expression made = node(kind, token.offset, std::move(arguments));
    made.negated = negated;
    return made;
  }

  Ruled<Expression> parse_prefix() {
    const Token token = now();
    if (token.kind == TokenKind::word && token.text == "not") {
      ++at_;
      RULES_ASSIGN(operand, parse_from(kNot));
      return node(Syntax::negation, token.offset, list(std::move(operand)));
    }
    if (token.kind == TokenKind::op && (token.text == "-" || token.text == "+")) {
      ++at_;
      RULES_ASSIGN(operand, parse_from(kSign));
      const bool is_number = operand.kind == Syntax::integer || operand.kind == Syntax::decimal;
      if (is_number && token.text == "-") {  // PostgreSQL's grammar folds the sign of a number, too
        operand.text = operand.text.starts_with('-') ? operand.text.substr(1) : "-" + operand.text;
        return operand;
      }
      return node(Syntax::unary, token.offset, list(std::move(operand)), token.text);
    }
    return parse_primary();
  }

  Ruled<Expression> parse_primary() {
    const Token token = now();
    switch (token.kind) {
      case TokenKind::integer:
      case TokenKind::decimal:
      case TokenKind::string:
        ++at_;
        return node(token.kind == TokenKind::integer   ? Syntax::integer
                    : token.kind == TokenKind::decimal ? Syntax::decimal
                                                       : Syntax::string,
                    token.offset, {}, token.text);
      case TokenKind::quoted:
        return parse_column(Row::newest, token.offset);
      case TokenKind::punctuation:
        if (take_mark("(")) {
          RULES_ASSIGN(inner, parse_from(0));
          RULES_TRY(expect_mark(")"));
          return inner;
        }
        return unexpected_token();
      case TokenKind::word:
        return parse_word(token);
      default:
        return unexpected_token();
    }
  }

  Ruled<Expression> parse_column(Row row, uint32_t offset) {
    if (now().kind != TokenKind::quoted && now().kind != TokenKind::word) return unexpected_token();
    Expression made = node(Syntax::column, offset, {}, now().text);
    made.row = row;
    ++at_;
    if (is_mark(".")) return refuse("only old and new qualify a column", now().offset);
    return made;
  }

  Ruled<Expression> parse_word(const Token& token) {
    const std::string& word = token.text;
    if (word == "true" || word == "false") {
      ++at_;
      return node(Syntax::boolean, token.offset, {}, word);
    }
    if (word == "null") {
      ++at_;
      return node(Syntax::null, token.offset);
    }
    if (word == "case") return parse_case(token.offset);
    const bool called = ahead(1).kind == TokenKind::punctuation && ahead(1).text == "(";
    if (called) {
      if (word == "cast") return parse_cast(token.offset);
      if (auto special = parse_special(token)) return std::move(*special);
    }
    if (const auto type = typed_literal()) {
      Expression made = node(Syntax::cast, token.offset, list(node(Syntax::string, now().offset, {}, now().text)),
                             std::string(*type));
      ++at_;
      return made;
    }
    if (one_of(word, kReserved)) return unexpected_token();
    ++at_;
    if (called) return parse_call(token);
    if ((word == "old" || word == "new") && take_mark(".")) {
      return parse_column(word == "old" ? Row::before : Row::after, token.offset);
    }
    if (is_mark(".")) return refuse("only old and new qualify a column", token.offset);
    if (one_of(word, kAttributes)) return node(Syntax::attribute, token.offset, {}, word);
    return node(Syntax::column, token.offset, {}, word);
  }

  // `date '2026-01-31'`: the type, and its string is now().
  std::optional<std::string_view> typed_literal() {
    const size_t start = at_;
    const auto type = take_type_name();
    if (type && now().kind == TokenKind::string) return type;
    at_ = start;
    return std::nullopt;
  }

  std::optional<std::string_view> take_type_name() {
    if (now().kind != TokenKind::word) return std::nullopt;
    size_t words = 0;
    const auto type = find_type_name(
        [this](size_t i) {
          return ahead(i).kind == TokenKind::word ? std::string_view(ahead(i).text) : std::string_view();
        },
        words);
    if (type) at_ += words;
    return type;
  }

  Ruled<Expression> parse_cast_to(Expression operand, uint32_t offset) {
    const Token token = now();
    const auto type = take_type_name();
    if (!type) return refuse("'" + token.text + "' is no type that a condition may use", token.offset);
    Expression made = node(Syntax::cast, offset, list(std::move(operand)), std::string(*type));
    if (take_mark("(")) {
      do {
        if (now().kind != TokenKind::integer || now().text.size() > 8) return unexpected_token();
        made.modifiers.push_back(std::stoi(now().text));
        ++at_;
      } while (take_mark(","));
      RULES_TRY(expect_mark(")"));
    }
    // `timestamp(3) with time zone`, `integer[]`: not supported.
    if (is_word("with") || is_word("without")) return unexpected_token();
    return made;
  }

  Ruled<Expression> parse_cast(uint32_t offset) {
    at_ += 2;
    RULES_ASSIGN(operand, parse_from(0));
    RULES_TRY(expect_word("as"));
    RULES_ASSIGN(made, parse_cast_to(std::move(operand), offset));
    RULES_TRY(expect_mark(")"));
    return made;
  }

  Ruled<Expression> parse_case(uint32_t offset) {
    ++at_;
    std::vector<Expression> arguments;
    const bool matched = !is_word("when");
    if (matched) {
      RULES_ASSIGN(subject, parse_from(0));
      arguments.push_back(std::move(subject));
    }
    RULES_TRY(expect_word("when"));
    do {
      RULES_ASSIGN(condition, parse_from(0));
      RULES_TRY(expect_word("then"));
      RULES_ASSIGN(result, parse_from(0));
      arguments.push_back(std::move(condition));
      arguments.push_back(std::move(result));
    } while (take_word("when"));
    if (take_word("else")) {
      RULES_ASSIGN(otherwise, parse_from(0));
      arguments.push_back(std::move(otherwise));
    } else {
      arguments.push_back(node(Syntax::null, now().offset));
    }
    RULES_TRY(expect_word("end"));
    return node(matched ? Syntax::matched : Syntax::choice, offset, std::move(arguments));
  }

  Ruled<Expression> parse_call(const Token& name) {
    ++at_;  // the parenthesis
    std::vector<Expression> arguments;
    if (!is_mark(")")) {
      do {
        RULES_ASSIGN(argument, parse_from(0));
        arguments.push_back(std::move(argument));
      } while (take_mark(","));
    }
    RULES_TRY(expect_mark(")"));
    Syntax kind = Syntax::function;
    if (name.text == "coalesce") kind = Syntax::coalesce;
    if (name.text == "nullif") kind = Syntax::nullif;
    if (kind == Syntax::nullif && arguments.size() != 2) return refuse("nullif has two arguments", name.offset);
    if (arguments.empty()) return refuse("a function without arguments", name.offset);
    return node(kind, name.offset, std::move(arguments), name.text);
  }

  // Functions whose arguments are not a plain list: extract, position, substring, trim. None: a plain call.
  std::optional<Ruled<Expression>> parse_special(const Token& name) {
    const size_t start = at_;
    if (name.text == "extract") {
      at_ += 2;
      const Token field = now();
      if (field.kind == TokenKind::word || field.kind == TokenKind::string) ++at_;
      if (take_word("from")) return parse_rest(name, "extract", node(Syntax::string, field.offset, {}, field.text));
    } else if (name.text == "position") {
      at_ += 2;
      auto needle = parse_from(kOther);
      if (!needle) return std::unexpected(std::move(needle).error());
      if (take_word("in")) {
        auto made = parse_rest(name, "position", std::move(*needle));
        if (made) std::swap(made->arguments[0], made->arguments[1]);
        return made;
      }
    } else if (name.text == "substring") {
      at_ += 2;
      auto whole_text = parse_from(0);
      if (!whole_text) return std::unexpected(std::move(whole_text).error());
      if (take_word("from")) return parse_substring(name, std::move(*whole_text));
    } else if (name.text == "trim") {
      at_ += 2;
      return parse_trim(name);
    }
    at_ = start;
    return std::nullopt;
  }

  // `... FROM x)`, `... IN x)`.
  Ruled<Expression> parse_rest(const Token& name, std::string function, Expression first) {
    RULES_ASSIGN(second, parse_from(0));
    RULES_TRY(expect_mark(")"));
    return node(Syntax::function, name.offset, list(std::move(first), std::move(second)), std::move(function));
  }

  Ruled<Expression> parse_substring(const Token& name, Expression first) {
    std::vector<Expression> arguments = list(std::move(first));
    RULES_ASSIGN(from, parse_from(0));
    arguments.push_back(std::move(from));
    if (take_word("for")) {
      RULES_ASSIGN(length, parse_from(0));
      arguments.push_back(std::move(length));
    }
    RULES_TRY(expect_mark(")"));
    return node(Syntax::function, name.offset, std::move(arguments), "substring");
  }

  Ruled<Expression> parse_trim(const Token& name) {
    std::string function = "btrim";
    if (take_word("leading")) {
      function = "ltrim";
    } else if (take_word("trailing")) {
      function = "rtrim";
    } else {
      take_word("both");
    }
    std::vector<Expression> arguments;
    const bool nothing_before = take_word("from");
    RULES_ASSIGN(first, parse_from(0));
    arguments.push_back(std::move(first));
    if (!nothing_before && take_word("from")) {
      RULES_ASSIGN(text, parse_from(0));
      arguments.insert(arguments.begin(), std::move(text));
    } else if (take_mark(",")) {
      RULES_ASSIGN(characters, parse_from(0));
      arguments.push_back(std::move(characters));
    }
    RULES_TRY(expect_mark(")"));
    return node(Syntax::function, name.offset, std::move(arguments), function);
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
};

}  // namespace

Ruled<Expression> parse(std::string_view text) {
  auto tokens = tokenize(text);
  if (!tokens) return std::unexpected(place_in(text, std::move(tokens).error()));
  auto parsed = Parser(std::move(*tokens)).whole();
  if (!parsed) return std::unexpected(place_in(text, std::move(parsed).error()));
  return parsed;
}

}  // namespace thalweg::rules
