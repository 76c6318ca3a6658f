#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rules/typed.h"

namespace thalweg::rules {

// A value that the row must bring.
struct Load {
  enum class From : uint8_t { row, attribute } from;
  Row row;
  Attribute attribute;
  uint16_t column;
  Type type;
  bool is_key;
  uint32_t place;  // in Program::registers
};

enum class Step : uint8_t {
  call,           // a, b, c
  combine_all,    // target = target AND a
  combine_any,    // target = target OR a
  jump_if_false,  // a
  jump_if_true,   // a
  jump_if_null,   // a
  jump_unless,    // a is not true; the program ends undecided where a is undecidable
  jump,
  copy,     // a
  negate,   // a
  is_null,  // a; negated
  is_true,
  is_false,
  is_unknown,
  distinct,   // a, b; negated
  nullif,     // a, b
  call_many,  // b arguments in the registers from a on
  extreme,    // target = a, where a takes its place
};

struct Instruction {
  Step step;
  bool negated = false;
  uint32_t target = 0;  // a register; of a jump: an instruction
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  Function function = nullptr;
};

// A typed expression as a flat list of steps over registers. Running it allocates nothing.
// Owner: one thread. The objects that the constants point at must outlive it.
class Program {
 public:
  explicit Program(const Typed& node);

  std::vector<Load>& loads() { return loads_; }
  Datum& at(uint32_t place) { return registers_[place]; }

  // Evaluates the program, once everything is loaded. Undecidable where an unknown value decides; state and failure()
  // tell the outcome. The result is valid until the next call.
  const Datum& value(Scratch& scratch);
  Failure failure() const { return failure_; }

 private:
  uint32_t emit(const Typed& node);
  uint32_t emit_logical(const Typed& node);
  uint32_t emit_choice(const Typed& node);
  uint32_t emit_coalesce(const Typed& node);
  uint32_t emit_in(const Typed& node);
  uint32_t emit_many(const Typed& node);
  uint32_t emit_extreme(const Typed& node);
  uint32_t emit_load(const Typed& node);
  uint32_t new_register();
  size_t emit_jump(Step step, uint32_t condition);
  void land(size_t jump) { instructions_[jump].target = static_cast<uint32_t>(instructions_.size()); }
  uint32_t call(const Instruction& instruction);
  Failure run_call(const Instruction& instruction, Scratch& scratch);
  Failure run_call_many(const Instruction& instruction, Scratch& scratch);
  void run_extreme(const Instruction& instruction, Scratch& scratch);
  void run_test(const Instruction& instruction);
  Failure run_equality(const Instruction& instruction, Scratch& scratch);

  std::vector<Instruction> instructions_;
  std::vector<Datum> registers_;
  std::vector<Load> loads_;
  std::vector<uint32_t> subjects_;  // register of each `let`'s slot
  uint32_t result_ = 0;
  Datum undecidable_;
  Failure failure_ = Failure::none;
};

}  // namespace thalweg::rules
