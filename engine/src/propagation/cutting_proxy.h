#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/wake.h"
#include "propagation/agent_thread.h"
#include "propagation/connection.h"

// A TCP proxy for tests, which cuts connections or lets them go deaf.

namespace thalweg::propagation {

// Passes bytes between those who connect to port() and a target on loopback. Thread-safe: cut, cut_every and freeze by
// anybody.
class CuttingProxy {
 public:
  explicit CuttingProxy(uint16_t target, uint64_t seed = 0)
      : target_(target), random_(seed), listener_(listen_on("127.0.0.1", 0, true).value()) {
    thread_ = start_agent([this] { run(); });
  }
  ~CuttingProxy() {
    stop_ = true;
    wake_.ring();
    thread_.join();
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  uint16_t port() const { return port_of(listener_); }
  // Each connection from now on is cut after 0 to `bytes_max` bytes; 0: never.
  void cut_after(size_t bytes_max) { cut_bytes_max_ = bytes_max; }
  // Cuts all connections now.
  void cut() {
    cut_now_ = true;
    wake_.ring();
  }
  // Passes nothing any more and closes nothing: both ends' peers are silent. New connections are frozen as well.
  void freeze(bool frozen) {
    frozen_ = frozen;
    wake_.ring();
  }
  uint64_t cuts() const { return cuts_; }

 private:
  struct Pair {
    std::array<base::File, 2> sockets;
    std::array<std::vector<std::byte>, 2> waiting;  // read from the other, not written to this one
    size_t left = 0;                                // bytes until it is cut; 0: never
  };

  void run() {
    while (!stop_) {
      std::vector<pollfd> polled{wake_.polled(), {.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
      for (const auto& pair : pairs_) {
        for (size_t side = 0; side < 2; ++side) {
          short events = 0;
          if (!frozen_ && pair->waiting[1 - side].empty()) events |= POLLIN;
          if (!frozen_ && !pair->waiting[side].empty()) events |= POLLOUT;
          // Frozen sockets are left out altogether: poll would report their hang-ups for ever.
          polled.push_back({.fd = frozen_ ? -1 : pair->sockets[side].descriptor(), .events = events, .revents = 0});
        }
      }
      poll(polled.data(), polled.size(), -1);
      if (polled[0].revents != 0) wake_.clear();
      if (cut_now_.exchange(false)) {
        cuts_ += pairs_.size();
        pairs_.clear();
      }
      if (!frozen_) {
        std::erase_if(pairs_, [this](const auto& pair) { return !pass(*pair, 0) || !pass(*pair, 1); });
      }
      if (polled[1].revents != 0) accept();
    }
  }

  void accept() {
    auto client = accept_from(listener_);
    if (!client || !client->is_open()) return;
    auto server = begin_connect(resolve_peer("127.0.0.1", target_).value().front(), true, 0);
    if (!server) return;
    auto pair = std::make_unique<Pair>();
    pair->sockets = {std::move(*client), std::move(*server)};
    if (cut_bytes_max_ > 0) pair->left = 1 + random_() % cut_bytes_max_;
    pairs_.push_back(std::move(pair));
  }

  // Moves what can be moved towards `side`. False: the pair is done for.
  bool pass(Pair& pair, size_t side) {
    auto& waiting = pair.waiting[side];
    if (waiting.empty()) {
      waiting.resize(64 * 1024);
      const ssize_t got = recv(pair.sockets[1 - side].descriptor(), waiting.data(), waiting.size(), 0);
      waiting.resize(got > 0 ? static_cast<size_t>(got) : 0);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS;
      if (pair.left > 0) {
        if (waiting.size() >= pair.left) {  // the part before the cut still arrives
          static_cast<void>(send(pair.sockets[side].descriptor(), waiting.data(), pair.left, MSG_NOSIGNAL));
          ++cuts_;
          return false;
        }
        pair.left -= waiting.size();
      }
    }
    const ssize_t put = send(pair.sockets[side].descriptor(), waiting.data(), waiting.size(), MSG_NOSIGNAL);
    if (put < 0) return errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS;
    waiting.erase(waiting.begin(), waiting.begin() + put);
    return true;
  }

  const uint16_t target_;
  std::mt19937_64 random_;
  base::File listener_;
  base::Wake wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> frozen_{false};
  std::atomic<bool> cut_now_{false};
  std::atomic<size_t> cut_bytes_max_{0};
  std::atomic<uint64_t> cuts_{0};
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::thread thread_;
};

}  // namespace thalweg::propagation
