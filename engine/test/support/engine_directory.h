#pragma once

#include <string>

namespace thalweg::test {

// The folder engine/ of the checkout that built this test: contracts, golden files, corpora lie below it.
std::string engine_directory();

}  // namespace thalweg::test
