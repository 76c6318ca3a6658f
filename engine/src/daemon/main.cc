#include <getopt.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "control/http_server.h"
#include "control/listen_address.h"
#include "control/state_directory.h"
#include "control/token_file.h"
#include "daemon/engine.h"
#include "pg/connection.h"

// thalwegd: flags, signals, and the one place where an exit status is decided.

namespace {

using namespace thalweg;

constexpr const char* kUsage =
    "Usage: thalwegd --state-dir DIR [--listen HOST:PORT] [--token-file FILE] [--tls-cert FILE --tls-key FILE]\n"
    "                [--propagation-listen HOST:PORT] [--key-file FILE]\n"
    "                [--log-level debug|info|warning|error] [--log-file FILE] [--version] [--help]\n"
    "\n"
    "  --state-dir   the engine's folder: desired state, spill; created where missing\n"
    "  --listen      address of the control API, default 127.0.0.1:8643; not loopback only with TLS\n"
    "  --propagation-listen  where other engines send LCRs to, default 127.0.0.1:8644; TLS with the engine's identity\n"
    "  --token-file  bearer token of the control API, default DIR/token; created where missing\n"
    "  --key-file    encrypts the desired state, with the databases' passwords, on the disk; default DIR/key; created\n"
    "                where missing; 64 hexadecimal digits\n";
constexpr std::chrono::seconds kStopPatience{45};  // more than a stream's drain

struct Flags {
  std::string state_directory;
  std::string listen = "127.0.0.1:8643";
  std::string propagation_listen = "127.0.0.1:8644";
  std::string token_file;
  std::string key_file;
  std::string tls_certificate;
  std::string tls_key;
  std::string log_file;
  base::LogLevel log_level = base::LogLevel::info;
};

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "thalwegd: %s\n%s", why.c_str(), kUsage);
  std::exit(2);
}

base::LogLevel parse_level(const std::string& text) {
  if (text == "debug") return base::LogLevel::debug;
  if (text == "info") return base::LogLevel::info;
  if (text == "warning") return base::LogLevel::warning;
  if (text == "error") return base::LogLevel::error;
  refuse("--log-level is '" + text + "', not debug, info, warning or error");
}

Flags parse_flags(int argc, char** argv) {
  static const option kOptions[] = {{"state-dir", required_argument, nullptr, 's'},
                                    {"listen", required_argument, nullptr, 'l'},
                                    {"propagation-listen", required_argument, nullptr, 'p'},
                                    {"token-file", required_argument, nullptr, 't'},
                                    {"key-file", required_argument, nullptr, 'e'},
                                    {"tls-cert", required_argument, nullptr, 'c'},
                                    {"tls-key", required_argument, nullptr, 'k'},
                                    {"log-level", required_argument, nullptr, 'v'},
                                    {"log-file", required_argument, nullptr, 'f'},
                                    {"version", no_argument, nullptr, 'V'},
                                    {"help", no_argument, nullptr, 'h'},
                                    {nullptr, 0, nullptr, 0}};
  Flags flags;
  for (int flag; (flag = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (flag) {
      case 's':
        flags.state_directory = optarg;
        break;
      case 'l':
        flags.listen = optarg;
        break;
      case 'p':
        flags.propagation_listen = optarg;
        break;
      case 't':
        flags.token_file = optarg;
        break;
      case 'e':
        flags.key_file = optarg;
        break;
      case 'c':
        flags.tls_certificate = optarg;
        break;
      case 'k':
        flags.tls_key = optarg;
        break;
      case 'v':
        flags.log_level = parse_level(optarg);
        break;
      case 'f':
        flags.log_file = optarg;
        break;
      case 'V':
        std::printf("thalwegd %s\n", THALWEG_VERSION);
        std::exit(0);
      case 'h':
        std::printf("%s", kUsage);
        std::exit(0);
      default:
        refuse("unknown flag");
    }
  }
  if (optind != argc) refuse(std::string("unexpected argument '") + argv[optind] + "'");
  if (flags.state_directory.empty()) refuse("--state-dir is missing");
  if (flags.token_file.empty()) flags.token_file = flags.state_directory + "/token";
  if (flags.key_file.empty()) flags.key_file = flags.state_directory + "/key";
  return flags;
}

base::Result<void> run(const Flags& flags, const sigset_t& ending) {
  THALWEG_TRY(base::start_logging(flags.log_level, flags.log_file));
  THALWEG_ASSIGN(auto address, control::parse_listen_address(flags.listen));
  THALWEG_ASSIGN(auto receives_at, control::parse_listen_address(flags.propagation_listen));
  THALWEG_ASSIGN(control::StateDirectory state, control::StateDirectory::open(flags.state_directory));
  THALWEG_ASSIGN(std::string token, control::load_or_create_token(flags.token_file));
  base::SystemClock clock;
  THALWEG_ASSIGN(std::unique_ptr<daemon::Engine> engine,
                 daemon::Engine::open(state.path(), flags.key_file, clock, {receives_at.first, receives_at.second}));
  auto server = control::HttpServer::start({.host = address.first,
                                            .port = address.second,
                                            .token = token,
                                            .tls_certificate = flags.tls_certificate,
                                            .tls_key = flags.tls_key},
                                           *engine);
  if (!server) return std::unexpected(server.error());
  base::log_event(base::LogLevel::info, "engine_started",
                  {{"version", THALWEG_VERSION},
                   {"host", address.first},
                   {"port", (*server)->port()},
                   {"state_dir", state.path().string()}});

  int signal = 0;
  ::sigwait(&ending, &signal);
  base::log_event(base::LogLevel::info, "engine_stopping", {{"signal", signal}});
  const bool drained = engine->stop(kStopPatience);
  // A database that does not answer must not keep the engine: everything that counts is durable elsewhere.
  if (!drained) {
    base::log_event(base::LogLevel::info, "engine_stopped", {{"drained", drained}});
    std::_Exit(0);
  }
  server->reset();  // requests that wait for a database have been told to give up
  base::log_event(base::LogLevel::info, "engine_stopped", {{"drained", drained}});
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags = parse_flags(argc, argv);
  pg::forget_environment();
  // Before any thread: every thread inherits the mask, and only sigwait sees the two.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  auto ran = run(flags, ending);
  if (ran) return 0;
  base::log_error("engine_failed", ran.error());
  std::fprintf(stderr, "thalwegd: %s\n%s\n", ran.error().message.c_str(),
               std::string(base::cure_of(ran.error().code)).c_str());
  return 1;
}
