#include "shipment/archive_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/plain_text.h"

namespace thalweg::shipment {

namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::minutes kPatience{10};
constexpr std::chrono::seconds kEndPatience{2};
constexpr int kNotThereMax = 125;
constexpr size_t kOutputBytes = 500;

// The settings of one process: nothing of ours is open there, no signal is blocked.
class Setting {
 public:
  explicit Setting(const std::string& output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files_, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    sigset_t none;
    sigset_t usual;
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Setting() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  base::Result<pid_t> begin(const std::string& command) const {
    std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                      const_cast<char*>(command.c_str()), nullptr};
    pid_t process = 0;
    const int error = posix_spawn(&process, "/bin/sh", &files_, &attributes_, arguments.data(), environ);
    if (error != 0) return std::unexpected(base::file_error(error, "run /bin/sh"));
    return process;
  }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

// None: it runs.
std::optional<int> ended(pid_t process) {
  int status = 0;
  const pid_t found = waitpid(process, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  return found == process ? status : -1;
}

// Children of the shell may ignore the first signal and outlive it.
void end(pid_t process) {
  kill(-process, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kEndPatience;
  bool has_ended = false;
  while (!has_ended && std::chrono::steady_clock::now() < until) {
    has_ended = ended(process).has_value();
    if (!has_ended) std::this_thread::sleep_for(kLook);
  }
  kill(-process, SIGKILL);
  int status = 0;
  if (!has_ended) waitpid(process, &status, 0);
}

std::string said(const std::string& output) {
  const auto text = base::read_file(output);
  if (!text || text->empty()) return "It said nothing.";
  const std::string last = text->substr(text->size() > kOutputBytes ? text->size() - kOutputBytes : 0);
  return base::is_plain_text(last) ? "It said: " + last : "What it said is no text.";
}

}  // namespace

base::Result<std::string> expand(const ArchiveCommand& command) {
  std::string out;
  for (size_t at = 0; at < command.text.size(); ++at) {
    if (command.text[at] != '%') {
      out += command.text[at];
      continue;
    }
    const char next = at + 1 < command.text.size() ? command.text[++at] : '\0';
    if (next == 'f') {
      out += command.name;
    } else if (next == 'p') {
      out += command.path;
    } else if (next == '%') {
      out += '%';
    } else {
      return archive_failed("The archive's command has a % that is followed by none of f, p and %.");
    }
  }
  return out;
}

base::Result<bool> run(const ArchiveCommand& command) {
  THALWEG_ASSIGN(const std::string text, expand(command));
  const std::string output = command.path + ".output";
  THALWEG_ASSIGN(const pid_t process, Setting(output).begin(text));
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::optional<int> status;
  while (!(status = ended(process))) {
    const bool is_late = std::chrono::steady_clock::now() >= until;
    if (is_late || (command.stop != nullptr && *command.stop)) {
      end(process);
      if (!is_late) return base::fail(base::ErrorCode::engine_stopping, "The archive's command was interrupted");
      return archive_failed(fmt::format("The archive's command has not ended within {} minutes.", kPatience.count()));
    }
    std::this_thread::sleep_for(kLook);
  }
  const bool is_plain = WIFEXITED(*status);
  if (is_plain && WEXITSTATUS(*status) <= kNotThereMax) return WEXITSTATUS(*status) == 0;
  const std::string how =
      is_plain ? fmt::format("exit status {}", WEXITSTATUS(*status)) : fmt::format("signal {}", WTERMSIG(*status));
  return archive_failed(fmt::format("The archive's command ended with {}. {}", how, said(output)));
}

}  // namespace thalweg::shipment
