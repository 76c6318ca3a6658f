// An engine among others without certificates, which the simulation leaves out: takes the place of daemon/peering.cc,
// which the linker then leaves out. An engine is called what its process is.

#include "daemon/peering.h"

#include <memory>

#include <fmt/format.h>

#include "simulation/scheduler.h"

namespace thalweg::daemon {

base::Result<std::string> Peering::name() const { return simulation::Scheduler::current()->process().name; }

base::Result<propagation::LinkSecurity> Peering::security() const {
  return propagation::LinkSecurity{.tls = {}, .plain_on_loopback = true};
}

base::Result<propagation::ReceiverPort*> Peering::port() {
  THALWEG_ASSIGN(const std::string engine, name());
  THALWEG_ASSIGN(const propagation::LinkSecurity plain, security());
  const std::lock_guard lock(mutex_);
  if (!port_) {
    auto port = std::make_unique<propagation::ReceiverPort>(
        propagation::ReceiverPortOptions{.engine = engine,
                                         .address = address_.host,
                                         .port = static_cast<uint16_t>(address_.port),
                                         .security = plain,
                                         .versions = {}});
    THALWEG_TRY(port->start());
    port_ = std::move(port);
  }
  return port_.get();
}

std::string Peering::listen_address() const { return fmt::format("{}:{}", address_.host, address_.port); }

base::Result<void> Peering::renew() {
  static_cast<void>(identity_);  // has nothing to renew; clang asks why it is kept
  return {};
}

}  // namespace thalweg::daemon
