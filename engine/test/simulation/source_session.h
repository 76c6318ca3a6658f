#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulation/source.h"

namespace thalweg::simulation {

// One session at the source: an ordinary one, or a walsender.
class SourceSession final : public Session {
 public:
  SourceSession(Source& source, std::shared_ptr<Channel> channel)
      : Session(source, std::move(channel)), source_(source) {}
  ~SourceSession() override;

 private:
  Outcome execute(const std::string& sql, const std::vector<Parameter>& parameters) override;
  Outcome commit() override { return {}; }
  void roll_back() override {}
  Outcome copy_in(const std::string& sql, const std::string& bytes) override;
  void replicate(const std::string& sql) override;
  Outcome take_slot(const std::string& sql, uint64_t& start);
  std::optional<Outcome> catalogue_statement(const std::string& sql, const std::vector<Parameter>& parameters);
  std::optional<Outcome> table_statement(const std::string& sql, const std::vector<Parameter>& parameters) const;
  // Of START_REPLICATION, 0 where it asks for none; an error where the plugin does not know it.
  Outcome take_batch_version(const std::string& sql);
  void send(uint64_t lsn, const std::string& payload);
  void add_to_batch(uint64_t lsn, const std::string& payload);
  void send_batch();
  void send_keepalive(uint64_t lsn, bool reply);
  // False: the stream ends. `position`: everything that commits before it was sent.
  bool take_feedback(uint64_t position);

  Source& source_;
  bool holds_slot_ = false;
  Time heard_ = 0;
  std::string batch_;  // not sent yet
  uint64_t batch_lsn_ = 0;
  int batch_version_ = 0;
};

}  // namespace thalweg::simulation
