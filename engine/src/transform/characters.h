#pragma once

namespace thalweg::transform {

// In UTF-8: every byte but those that go on with a character.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

}  // namespace thalweg::transform
