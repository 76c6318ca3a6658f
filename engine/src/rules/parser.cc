#include "rules/parser.h"

#include <array>

#include "rules/parsing.h"
#include "rules/reserved_words.h"

// Precedence climbing over PostgreSQL's table of precedences (its manual, "Operator Precedence").

namespace thalweg::rules {

namespace {

constexpr std::array kAttributes{"schema", "table", "operation", "tag", "source", "commit_time"};

}  // namespace

Expression node(Syntax kind, uint32_t offset, std::vector<Expression> arguments, std::string text) {
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

Ruled<Expression> Parser::whole() {
  RULES_ASSIGN(expression, parse_from(0));
  if (now().kind != TokenKind::end) return unexpected_token();
  return expression;
}

Ruled<Expression> Parser::parse_from(int level) {
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

std::optional<int> Parser::level_of_infix() const {
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

Ruled<Expression> Parser::parse_infix(Expression left, int level) {
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

Ruled<Expression> Parser::parse_logical(Expression left, Syntax kind, int level, uint32_t offset) {
  std::vector<Expression> arguments = list(std::move(left));
  do {
    RULES_ASSIGN(right, parse_from(level + 1));
    arguments.push_back(std::move(right));
  } while (take_word(level == kOr ? "or" : "and"));
  return node(kind, offset, std::move(arguments));
}

Ruled<Expression> Parser::parse_is(Expression left, const Token& token) {
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

Ruled<Expression> Parser::parse_between(Expression left, const Token& token) {
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

Ruled<Expression> Parser::parse_prefix() {
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
  if (token.kind == TokenKind::op && token.text == "~") {
    ++at_;
    RULES_ASSIGN(operand, parse_from(kOther + 1));
    return node(Syntax::unary, token.offset, list(std::move(operand)), token.text);
  }
  return parse_primary();
}

Ruled<Expression> Parser::parse_primary() {
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

Ruled<Expression> Parser::parse_column(Row row, uint32_t offset) {
  if (now().kind != TokenKind::quoted && now().kind != TokenKind::word) return unexpected_token();
  Expression made = node(Syntax::column, offset, {}, now().text);
  made.row = row;
  ++at_;
  if (is_mark(".")) return refuse("only old and new qualify a column", now().offset);
  return made;
}

Ruled<Expression> Parser::parse_word(const Token& token) {
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
    Expression made =
        node(Syntax::cast, token.offset, list(node(Syntax::string, now().offset, {}, now().text)), std::string(*type));
    ++at_;
    return made;
  }
  const bool is_function = called && (word == "left" || word == "right");
  if (is_reserved(word) && !is_function) return unexpected_token();
  ++at_;
  if (called) return parse_call(token);
  if ((word == "old" || word == "new") && take_mark(".")) {
    return parse_column(word == "old" ? Row::before : Row::after, token.offset);
  }
  if (is_mark(".")) return refuse("only old and new qualify a column", token.offset);
  if (one_of(word, kAttributes)) return node(Syntax::attribute, token.offset, {}, word);
  return node(Syntax::column, token.offset, {}, word);
}

Ruled<Expression> parse(std::string_view text) {
  auto tokens = tokenize(text);
  if (!tokens) return std::unexpected(place_in(text, std::move(tokens).error()));
  auto parsed = Parser(std::move(*tokens)).whole();
  if (!parsed) return std::unexpected(place_in(text, std::move(parsed).error()));
  return parsed;
}

}  // namespace thalweg::rules
