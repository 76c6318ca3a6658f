#include "rules/program.h"

#include <algorithm>
#include <span>

namespace thalweg::rules {

namespace {

void set_boolean(Datum& out, bool value) {
  out.integer = value ? 1 : 0;
  out.state = State::value;
}

bool is(const Datum& datum, bool value) { return datum.state == State::value && (datum.integer != 0) == value; }

// AND (decisive: false) and OR (decisive: true) over true, false, NULL and undecidable.
void combine(Datum& into, const Datum& with, bool decisive) {
  if (is(into, decisive)) return;
  if (is(with, decisive)) {
    into = with;
  } else if (into.state == State::undecidable || with.state == State::undecidable) {
    into.state = State::undecidable;
  } else if (into.state == State::null || with.state == State::null) {
    into.state = State::null;
  }
}

}  // namespace

Program::Program(const Typed& node) {
  result_ = emit(node);
  undecidable_.state = State::undecidable;
}

uint32_t Program::new_register() {
  registers_.emplace_back();
  return static_cast<uint32_t>(registers_.size() - 1);
}

uint32_t Program::call(const Instruction& instruction) {
  instructions_.push_back(instruction);
  return instruction.target;
}

size_t Program::emit_jump(Step step, uint32_t condition) {
  instructions_.push_back({.step = step, .a = condition});
  return instructions_.size() - 1;
}

uint32_t Program::emit(const Typed& node) {
  switch (node.meaning) {
    case Meaning::constant: {
      const uint32_t place = new_register();
      registers_[place] = node.constant;
      return place;
    }
    case Meaning::column:
    case Meaning::attribute:
      return emit_load(node);
    case Meaning::subject:
      return subjects_[node.column];
    case Meaning::let: {
      const uint32_t subject = emit(node.arguments[0]);
      if (subjects_.size() <= node.column) subjects_.resize(node.column + size_t{1});
      subjects_[node.column] = subject;
      return emit(node.arguments[1]);
    }
    case Meaning::all:
    case Meaning::any:
      return emit_logical(node);
    case Meaning::choice:
      return emit_choice(node);
    case Meaning::coalesce:
      return emit_coalesce(node);
    case Meaning::in:
      return emit_in(node);
    case Meaning::extreme:
      return emit_extreme(node);
    default:
      break;
  }
  if (node.arguments.size() > 3) return emit_many(node);
  Instruction instruction{.step = Step::call, .negated = node.negated};
  instruction.a = emit(node.arguments[0]);
  instruction.b = node.arguments.size() > 1 ? emit(node.arguments[1]) : instruction.a;
  instruction.c = node.arguments.size() > 2 ? emit(node.arguments[2]) : instruction.a;
  instruction.target = new_register();
  if (node.evaluator != nullptr) instruction.function = node.evaluator->function;
  switch (node.meaning) {
    case Meaning::negation:
      instruction.step = Step::negate;
      break;
    case Meaning::is_null:
      instruction.step = Step::is_null;
      break;
    case Meaning::is_true:
      instruction.step = Step::is_true;
      break;
    case Meaning::is_false:
      instruction.step = Step::is_false;
      break;
    case Meaning::is_unknown:
      instruction.step = Step::is_unknown;
      break;
    case Meaning::distinct:
      instruction.step = Step::distinct;
      break;
    case Meaning::nullif:
      instruction.step = Step::nullif;
      break;
    default:
      break;
  }
  return call(instruction);
}

uint32_t Program::emit_load(const Typed& node) {
  const bool attribute = node.meaning == Meaning::attribute;
  for (const Load& load : loads_) {
    const bool same = attribute ? load.from == Load::From::attribute && load.attribute == node.attribute
                                : load.from == Load::From::row && load.row == node.row && load.column == node.column;
    if (same) return load.place;
  }
  const uint32_t place = new_register();
  loads_.push_back({.from = attribute ? Load::From::attribute : Load::From::row,
                    .row = node.row,
                    .attribute = node.attribute,
                    .column = node.column,
                    .type = node.stored,
                    .is_key = false,
                    .place = place});
  return place;
}

uint32_t Program::emit_logical(const Typed& node) {
  const bool all = node.meaning == Meaning::all;
  const uint32_t target = new_register();
  std::vector<size_t> jumps;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const uint32_t argument = emit(node.arguments[i]);
    const Step step = i == 0 ? Step::copy : all ? Step::combine_all : Step::combine_any;
    call({.step = step, .target = target, .a = argument});
    if (i + 1 < node.arguments.size())
      jumps.push_back(emit_jump(all ? Step::jump_if_false : Step::jump_if_true, target));
  }
  for (const size_t jump : jumps) land(jump);
  return target;
}

uint32_t Program::emit_choice(const Typed& node) {
  const uint32_t target = new_register();
  std::vector<size_t> ends;
  size_t at = 0;
  for (; at + 1 < node.arguments.size(); at += 2) {
    const uint32_t condition = emit(node.arguments[at]);
    const size_t next = emit_jump(Step::jump_unless, condition);
    call({.step = Step::copy, .target = target, .a = emit(node.arguments[at + 1])});
    ends.push_back(emit_jump(Step::jump, 0));
    land(next);
  }
  call({.step = Step::copy, .target = target, .a = emit(node.arguments[at])});
  for (const size_t end : ends) land(end);
  return target;
}

uint32_t Program::emit_coalesce(const Typed& node) {
  const uint32_t target = new_register();
  std::vector<size_t> ends;
  for (const Typed& argument : node.arguments) {
    call({.step = Step::copy, .target = target, .a = emit(argument)});
    const size_t next = emit_jump(Step::jump_if_null, target);
    ends.push_back(emit_jump(Step::jump, 0));
    land(next);
  }
  for (const size_t end : ends) land(end);
  return target;
}

uint32_t Program::emit_in(const Typed& node) {
  const uint32_t subject = emit(node.arguments[0]);
  std::vector<uint32_t> elements;
  for (size_t i = 1; i < node.arguments.size(); ++i) elements.push_back(emit(node.arguments[i]));
  const uint32_t target = new_register();
  const uint32_t test = new_register();
  std::vector<size_t> jumps;
  for (size_t i = 0; i < elements.size(); ++i) {
    call({.step = Step::call,
          .target = i == 0 ? target : test,
          .a = subject,
          .b = elements[i],
          .c = subject,
          .function = node.evaluator->function});
    if (i > 0) call({.step = node.negated ? Step::combine_all : Step::combine_any, .target = target, .a = test});
    jumps.push_back(emit_jump(node.negated ? Step::jump_if_false : Step::jump_if_true, target));
  }
  for (const size_t jump : jumps) land(jump);
  return target;
}

// The arguments are copied to registers that lie behind one another.
uint32_t Program::emit_many(const Typed& node) {
  std::vector<uint32_t> arguments;
  for (const Typed& argument : node.arguments) arguments.push_back(emit(argument));
  const uint32_t first = new_register();
  while (registers_.size() < first + arguments.size()) new_register();
  for (size_t i = 0; i < arguments.size(); ++i) {
    call({.step = Step::copy, .target = first + static_cast<uint32_t>(i), .a = arguments[i]});
  }
  return call({.step = Step::call_many,
               .target = new_register(),
               .a = first,
               .b = static_cast<uint32_t>(arguments.size()),
               .function = node.evaluator->function});
}

uint32_t Program::emit_extreme(const Typed& node) {
  std::vector<uint32_t> arguments;
  for (const Typed& argument : node.arguments) arguments.push_back(emit(argument));
  const uint32_t target = new_register();
  call({.step = Step::copy, .target = target, .a = arguments[0]});
  for (size_t i = 1; i < arguments.size(); ++i) {
    call({.step = Step::extreme, .target = target, .a = arguments[i], .function = node.evaluator->function});
  }
  return target;
}

Failure Program::run_call(const Instruction& instruction, Scratch& scratch) {
  const Datum& a = registers_[instruction.a];
  const Datum& b = registers_[instruction.b];
  const Datum& c = registers_[instruction.c];
  Datum& out = registers_[instruction.target];
  if (a.state == State::value && b.state == State::value && c.state == State::value) [[likely]] {
    out.state = State::value;
    return instruction.function(scratch, a, b, c, out);
  }
  const bool null = a.state == State::null || b.state == State::null || c.state == State::null;
  out.state = null ? State::null : State::undecidable;
  return Failure::none;
}

Failure Program::run_call_many(const Instruction& instruction, Scratch& scratch) {
  const auto arguments = std::span(registers_).subspan(instruction.a, instruction.b);
  Datum& out = registers_[instruction.target];
  const auto has = [&](State state) { return std::ranges::find(arguments, state, &Datum::state) != arguments.end(); };
  out.state = has(State::null) ? State::null : has(State::undecidable) ? State::undecidable : State::value;
  if (out.state != State::value) return Failure::none;
  return instruction.function(scratch, arguments[0], arguments[1], arguments[2], out);
}

// NULLs are left out. Of equal values the first one stays.
void Program::run_extreme(const Instruction& instruction, Scratch& scratch) {
  const Datum& next = registers_[instruction.a];
  Datum& kept = registers_[instruction.target];
  if (next.state == State::null || kept.state == State::undecidable) return;
  Datum takes_its_place;
  takes_its_place.integer = 1;
  if (kept.state == State::value && next.state == State::value) {
    instruction.function(scratch, kept, next, kept, takes_its_place);  // comparisons do not fail
  }
  if (takes_its_place.integer != 0) kept = next;
}

void Program::run_test(const Instruction& instruction) {
  const Datum& a = registers_[instruction.a];
  Datum& out = registers_[instruction.target];
  if (a.state == State::undecidable) {
    out.state = State::undecidable;
    return;
  }
  const bool holds = instruction.step == Step::is_null || instruction.step == Step::is_unknown
                         ? a.state == State::null
                         : is(a, instruction.step == Step::is_true);
  set_boolean(out, holds != instruction.negated);
}

// IS DISTINCT FROM and NULLIF.
Failure Program::run_equality(const Instruction& instruction, Scratch& scratch) {
  const Datum& a = registers_[instruction.a];
  const Datum& b = registers_[instruction.b];
  Datum& out = registers_[instruction.target];
  const bool undecidable = a.state == State::undecidable || b.state == State::undecidable;
  Datum equal;
  if (a.state == State::value && b.state == State::value) {
    const Failure failure = instruction.function(scratch, a, b, a, equal);
    if (failure != Failure::none) return failure;
  }
  if (instruction.step == Step::nullif) {
    const bool null = equal.integer != 0 || a.state == State::null;
    out = a;
    if (null) {
      out.state = State::null;
    } else if (undecidable) {
      out.state = State::undecidable;
    }
  } else if (undecidable) {
    out.state = State::undecidable;
  } else {
    const bool same = a.state == State::value && b.state == State::value ? equal.integer != 0 : a.state == b.state;
    set_boolean(out, same == instruction.negated);
  }
  return Failure::none;
}

const Datum& Program::value(Scratch& scratch) {
  failure_ = Failure::none;
  bool undecided = false;  // something before this step was undecidable: it might have ended the evaluation
  const size_t count = instructions_.size();
  for (size_t i = 0; i < count; ++i) {
    const Instruction& step = instructions_[i];
    Failure failure = Failure::none;
    switch (step.step) {
      case Step::call:
        failure = run_call(step, scratch);
        break;
      case Step::combine_all:
        combine(registers_[step.target], registers_[step.a], false);
        break;
      case Step::combine_any:
        combine(registers_[step.target], registers_[step.a], true);
        break;
      case Step::jump_if_false:
      case Step::jump_if_true:
        undecided = undecided || registers_[step.a].state == State::undecidable;
        if (is(registers_[step.a], step.step == Step::jump_if_true)) i = step.target - size_t{1};
        break;
      case Step::jump_if_null:
      case Step::jump_unless:
        if (registers_[step.a].state == State::undecidable) return registers_[step.a];
        if (step.step == Step::jump_unless ? !is(registers_[step.a], true) : registers_[step.a].state == State::null) {
          i = step.target - size_t{1};
        }
        break;
      case Step::jump:
        i = step.target - size_t{1};
        break;
      case Step::copy:
        registers_[step.target] = registers_[step.a];
        break;
      case Step::negate:
        registers_[step.target] = registers_[step.a];
        registers_[step.target].integer ^= 1;
        break;
      case Step::is_null:
      case Step::is_true:
      case Step::is_false:
      case Step::is_unknown:
        run_test(step);
        break;
      case Step::distinct:
      case Step::nullif:
        failure = run_equality(step, scratch);
        break;
      case Step::call_many:
        failure = run_call_many(step, scratch);
        break;
      case Step::extreme:
        run_extreme(step, scratch);
        break;
    }
    if (failure != Failure::none) [[unlikely]] {
      if (!undecided) failure_ = failure;
      return undecidable_;
    }
  }
  return registers_[result_];
}

}  // namespace thalweg::rules
