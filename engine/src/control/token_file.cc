#include "control/token_file.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/file.h"

namespace thalweg::control {
namespace {

constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenFileBytesMax = 4096;

base::Result<std::string> random_token() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return base::fail(base::ErrorCode::state_directory_failed, "The system gave no random bytes for the token");
  }
  std::string token;
  for (unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace

base::Result<std::string> load_or_create_token(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) {
    THALWEG_ASSIGN(std::string token, random_token());
    THALWEG_TRY(base::write_file_atomically(std::filesystem::absolute(path), token + "\n", 0600));
    return token;
  }
  THALWEG_ASSIGN(const std::string content, base::read_file(path, kTokenFileBytesMax));
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return base::fail(
        base::ErrorCode::state_directory_failed,
        fmt::format("The token file {} can be read by others than its owner; run chmod 600", path.string()));
  }
  size_t first = content.find_first_not_of(" \t\r\n");
  size_t last = content.find_last_not_of(" \t\r\n");
  std::string token = first == std::string::npos ? "" : content.substr(first, last - first + 1);
  if (token.size() < kTokenBytesMin) {
    return base::fail(base::ErrorCode::state_directory_failed,
                      fmt::format("The token file {} holds fewer than {} characters", path.string(), kTokenBytesMin));
  }
  return token;
}

bool same_token(std::string_view given, std::string_view expected) {
  // The loop's length depends on what was given only.
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference |= static_cast<unsigned char>(given[i] ^ other);
  }
  return difference == 0 && !expected.empty();
}

}  // namespace thalweg::control
