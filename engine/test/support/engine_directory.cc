#include "support/engine_directory.h"

namespace thalweg::test {

std::string engine_directory() { return THALWEG_ENGINE_DIRECTORY; }

}  // namespace thalweg::test
