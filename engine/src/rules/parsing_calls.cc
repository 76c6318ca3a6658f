#include "rules/parsing.h"
#include "rules/type_names.h"

namespace thalweg::rules {

std::optional<std::string_view> Parser::typed_literal() {
  const size_t start = at_;
  const auto type = take_type_name();
  if (type && now().kind == TokenKind::string) return type;
  at_ = start;
  return std::nullopt;
}

std::optional<std::string_view> Parser::take_type_name() {
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

Ruled<Expression> Parser::parse_cast_to(Expression operand, uint32_t offset) {
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

Ruled<Expression> Parser::parse_cast(uint32_t offset) {
  at_ += 2;
  RULES_ASSIGN(operand, parse_from(0));
  RULES_TRY(expect_word("as"));
  RULES_ASSIGN(made, parse_cast_to(std::move(operand), offset));
  RULES_TRY(expect_mark(")"));
  return made;
}

Ruled<Expression> Parser::parse_case(uint32_t offset) {
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

Ruled<Expression> Parser::parse_call(const Token& name) {
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
  if (name.text == "greatest" || name.text == "least") kind = Syntax::extreme;
  if (kind == Syntax::nullif && arguments.size() != 2) return refuse("nullif has two arguments", name.offset);
  if (arguments.empty()) return refuse("a function without arguments", name.offset);
  return node(kind, name.offset, std::move(arguments), name.text);
}

std::optional<Ruled<Expression>> Parser::parse_special(const Token& name) {
  const size_t start = at_;
  if (name.text == "extract") {
    at_ += 2;
    const Token field = now();
    if (field.kind == TokenKind::word || field.kind == TokenKind::string) ++at_;
    if (!take_word("from")) return unexpected_token();
    return parse_rest(name, "extract", node(Syntax::string, field.offset, {}, field.text));
  } else if (name.text == "position") {
    at_ += 2;
    auto needle = parse_from(kOther);
    if (!needle) return std::unexpected(std::move(needle).error());
    if (!take_word("in")) return unexpected_token();
    auto made = parse_rest(name, "position", std::move(*needle));
    if (made) std::swap(made->arguments[0], made->arguments[1]);
    return made;
  } else if (name.text == "substring") {
    at_ += 2;
    auto whole_text = parse_from(0);
    if (!whole_text) return std::unexpected(std::move(whole_text).error());
    if (take_word("from")) return parse_substring(name, std::move(*whole_text));
  } else if (name.text == "overlay") {
    at_ += 2;
    auto whole_text = parse_from(0);
    if (!whole_text) return std::unexpected(std::move(whole_text).error());
    if (take_word("placing")) return parse_overlay(name, std::move(*whole_text));
  } else if (name.text == "trim") {
    at_ += 2;
    return parse_trim(name);
  }
  at_ = start;
  return std::nullopt;
}

Ruled<Expression> Parser::parse_rest(const Token& name, std::string function, Expression first) {
  RULES_ASSIGN(second, parse_from(0));
  RULES_TRY(expect_mark(")"));
  return node(Syntax::function, name.offset, list(std::move(first), std::move(second)), std::move(function));
}

Ruled<Expression> Parser::parse_substring(const Token& name, Expression first) {
  return parse_part(name, "substring", list(std::move(first)));
}

Ruled<Expression> Parser::parse_overlay(const Token& name, Expression first) {
  RULES_ASSIGN(placed, parse_from(0));
  RULES_TRY(expect_word("from"));
  return parse_part(name, "overlay", list(std::move(first), std::move(placed)));
}

Ruled<Expression> Parser::parse_part(const Token& name, std::string function, std::vector<Expression> arguments) {
  RULES_ASSIGN(from, parse_from(0));
  arguments.push_back(std::move(from));
  if (take_word("for")) {
    RULES_ASSIGN(length, parse_from(0));
    arguments.push_back(std::move(length));
  }
  RULES_TRY(expect_mark(")"));
  return node(Syntax::function, name.offset, std::move(arguments), std::move(function));
}

Ruled<Expression> Parser::parse_trim(const Token& name) {
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

}  // namespace thalweg::rules
