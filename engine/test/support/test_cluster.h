#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

// A real PostgreSQL cluster for tests: own temporary directory, free port on 127.0.0.1, superuser postgres without
// password. PostgreSQL is found through pg_config --bindir, or THALWEG_PG_BINDIR. Root drops to user postgres.
// It dies with the test process, however that ends. Failures throw std::runtime_error: tests only.

namespace thalweg::test {

struct TestClusterOptions {
  // Over these defaults: wal_level logical, max_prepared_transactions 10, logical_decoding_work_mem 64kB, fsync off,
  // max_replication_slots and max_wal_senders 10.
  std::map<std::string, std::string> settings;
  // Lines before the default ones ("host all locked 127.0.0.1/32 scram-sha-256").
  std::vector<std::string> hba_lines;
};

class TestCluster {
 public:
  explicit TestCluster(const TestClusterOptions& options = {});
  ~TestCluster();
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  int port() const { return port_; }
  std::string conninfo(const std::string& database = "postgres", const std::string& user = "postgres") const;
  const std::string& directory() const { return directory_; }

  void stop();   // fast shutdown
  void crash();  // immediate shutdown: recovery at the next start
  void start();
  void restart() {
    stop();
    start();
  }
  // The path of a PostgreSQL program of the same installation.
  static std::string program(const std::string& name);

 private:
  void end(int signal);
  std::string directory_;
  int port_ = 0;
  pid_t postmaster_ = -1;
};

// One cluster for a whole test executable, started at first use. Tests make databases or tables of their own in it.
TestCluster& shared_cluster();

}  // namespace thalweg::test
