#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace thalweg::propagation {

// A thread that takes no SIGPIPE: OpenSSL writes to sockets with write(2), which a peer that is gone answers with it.
template <typename Run>
std::thread start_agent(Run run) {
  return std::thread([run = std::move(run)]() mutable {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    run();
  });
}

}  // namespace thalweg::propagation
