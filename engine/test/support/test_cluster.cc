#include "support/test_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <thread>

#include <spdlog/spdlog.h>

namespace thalweg::test {

namespace {

struct Account {
  uid_t user;
  gid_t group;
};

// The account to run the server as: none unless we are root, which PostgreSQL refuses.
std::optional<Account> unprivileged_account() {
  if (geteuid() != 0) return std::nullopt;
  for (const char* name : {"postgres", "nobody"}) {
    if (const passwd* entry = getpwnam(name); entry != nullptr) return Account{entry->pw_uid, entry->pw_gid};
  }
  throw std::runtime_error("neither user postgres nor nobody exists");
}

[[noreturn]] void run_child(const std::vector<std::string>& arguments, const std::string& log) {
  if (const auto account = unprivileged_account()) {
    if (setgroups(0, nullptr) != 0 || setgid(account->group) != 0 || setuid(account->user) != 0) _exit(126);
  }
  prctl(PR_SET_PDEATHSIG, SIGQUIT);  // after setuid, which clears it
  setpgid(0, 0);                     // Ctrl-C ends the test, which ends the server in order
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out < 0) _exit(126);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

pid_t spawn(const std::vector<std::string>& arguments, const std::string& log) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) run_child(arguments, log);
  return child;
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A port of loopback that nobody uses, below Linux's range for outgoing connections: none of those takes it meanwhile.
// Test programs that run at once begin at different places.
int free_port() {
  constexpr int lowest = 16000;
  constexpr int ports = 4000;
  static std::atomic<int> next{getpid() * 37 % ports};
  for (int tried = 0; tried < ports; ++tried) {
    const int port = lowest + next.fetch_add(1, std::memory_order_relaxed) % ports;
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    const int yes = 1;
    setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool bound = bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(probe);
    if (bound) return port;
  }
  throw std::runtime_error("no free port");
}

std::string bin_directory() {
  if (const char* given = std::getenv("THALWEG_PG_BINDIR"); given != nullptr) return given;
  FILE* pipe = popen("pg_config --bindir", "r");
  if (pipe == nullptr) throw std::runtime_error("pg_config cannot be run");
  std::array<char, 4096> line{};
  const bool read = std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pclose(pipe) != 0 || !read) throw std::runtime_error("pg_config --bindir failed");
  std::string directory{line.data()};
  while (!directory.empty() && directory.back() == '\n') directory.pop_back();
  return directory;
}

// Whether the server knows the parameter: minor releases from November 2026 let only the listed output plugins be used.
bool restricts_output_plugins() {
  const std::string command = TestCluster::program("postgres") + " --describe-config";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error(command + " cannot be run");
  std::array<char, 4096> line{};
  bool found = false;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    found = found || std::string_view{line.data()}.starts_with("output_plugin_libraries\t");
  }
  if (pclose(pipe) != 0) throw std::runtime_error(command + " failed");
  return found;
}

void write_configuration(const std::string& data, const std::string& sockets, int port,
                         const TestClusterOptions& options) {
  std::map<std::string, std::string> settings{{"listen_addresses", "127.0.0.1"},
                                              {"port", std::to_string(port)},
                                              {"unix_socket_directories", sockets},
                                              {"wal_level", "logical"},
                                              {"max_prepared_transactions", "10"},
                                              {"max_replication_slots", "10"},
                                              {"max_wal_senders", "10"},
                                              {"logical_decoding_work_mem", "64kB"},
                                              {"fsync", "off"},
                                              {"full_page_writes", "off"},
                                              {"autovacuum", "off"},
                                              {"lc_messages", "C"}};
  if (restricts_output_plugins()) settings["output_plugin_libraries"] = "pgoutput, test_decoding, thalweg_output";
  for (const auto& [name, value] : options.settings) settings[name] = value;
  std::ofstream out(data + "/postgresql.conf", std::ios::app);
  for (const auto& [name, value] : settings) out << name << " = '" << value << "'\n";

  const std::string hba = contents(data + "/pg_hba.conf");
  std::ofstream hba_out(data + "/pg_hba.conf", std::ios::trunc);
  for (const auto& line : options.hba_lines) hba_out << line << '\n';
  hba_out << hba;
  if (!out.flush() || !hba_out.flush()) throw std::runtime_error("the cluster's configuration cannot be written");
}

}  // namespace

std::string TestCluster::program(const std::string& name) {
  static const std::string directory = bin_directory();
  return directory + "/" + name;
}

TestCluster::TestCluster(const TestClusterOptions& options) : port_(free_port()) {
  // The process has its logger before its threads, as in thalwegd. libspdlog is not instrumented: where two threads log
  // first at once, ThreadSanitizer does not see the guard that orders them.
  spdlog::default_logger_raw();
  std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-pg-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
  if (const auto account = unprivileged_account()) {
    if (chown(directory_.c_str(), account->user, account->group) != 0) throw std::runtime_error("chown failed");
  }
  const std::string data = directory_ + "/data";
  const pid_t initdb = spawn(
      {program("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"},
      directory_ + "/initdb.log");
  int status = 0;
  if (waitpid(initdb, &status, 0) != initdb || status != 0) {
    throw std::runtime_error("initdb failed: " + contents(directory_ + "/initdb.log"));
  }
  write_configuration(data, directory_, port_, options);
  start();
}

TestCluster::~TestCluster() {
  end(SIGQUIT);
  std::error_code ignored;  // a leftover in the temporary directory harms no test
  std::filesystem::remove_all(directory_, ignored);
}

std::string TestCluster::conninfo(const std::string& database, const std::string& user) const {
  return "host=127.0.0.1 port=" + std::to_string(port_) + " dbname=" + database + " user=" + user;
}

void TestCluster::start() {
  const std::string data = directory_ + "/data";
  std::filesystem::remove(data + "/postmaster.pid");  // of a crash; nobody else uses this directory
  postmaster_ = spawn({program("postgres"), "-D", data}, directory_ + "/server.log");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (contents(data + "/postmaster.pid").find("ready") == std::string::npos) {
    int status = 0;
    if (waitpid(postmaster_, &status, WNOHANG) == postmaster_) {
      postmaster_ = -1;
      throw std::runtime_error("postgres ended: " + contents(directory_ + "/server.log"));
    }
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("postgres did not start in 60 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void TestCluster::end(int signal) {
  if (postmaster_ <= 0) return;
  kill(postmaster_, signal);
  waitpid(postmaster_, nullptr, 0);
  postmaster_ = -1;
}

void TestCluster::stop() { end(SIGINT); }
void TestCluster::crash() { end(SIGQUIT); }

TestCluster& shared_cluster() {
  static TestCluster cluster;
  return cluster;
}

}  // namespace thalweg::test
