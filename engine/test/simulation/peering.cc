// An engine among others without certificates, which the simulation leaves out: takes the place of daemon/peering.cc,
// which the linker then leaves out.

#include "daemon/peering.h"

#include "simulation/world.h"

namespace thalweg::daemon {

base::Result<std::string> Peering::name() const { return std::string(simulation::kCapturingEngine); }

base::Result<propagation::LinkSecurity> Peering::security() const {
  return propagation::LinkSecurity{.tls = {}, .plain_on_loopback = true};
}

base::Result<propagation::ReceiverPort*> Peering::port() {
  return base::fail(base::ErrorCode::identity_missing, "the engine that captures receives nothing");
}

std::string Peering::listen_address() const { return {}; }

base::Result<void> Peering::renew() {
  static_cast<void>(identity_);  // has nothing to renew; clang asks why it is kept
  return {};
}

}  // namespace thalweg::daemon
