#include "daemon/peering.h"

#include <fmt/format.h>

namespace thalweg::daemon {

base::Result<std::string> Peering::name() const {
  if (auto view = identity_.view()) return view->name;
  return base::fail(base::ErrorCode::identity_missing,
                    "The stream lies on two engines, and this one has no certificate to show to the other");
}

base::Result<propagation::LinkSecurity> Peering::security() const {
  THALWEG_TRY(name());
  return propagation::LinkSecurity{.tls = propagation::TlsFiles{.ca = identity_.ca_file(),
                                                                .certificate = identity_.certificate_file(),
                                                                .key = identity_.key_file()}};
}

base::Result<propagation::ReceiverPort*> Peering::port() {
  THALWEG_ASSIGN(const std::string engine, name());
  THALWEG_ASSIGN(const propagation::LinkSecurity security_now, security());
  const std::lock_guard lock(mutex_);
  if (!port_) {
    auto port = std::make_unique<propagation::ReceiverPort>(
        propagation::ReceiverPortOptions{.engine = engine,
                                         .address = address_.host,
                                         .port = static_cast<uint16_t>(address_.port),
                                         .security = security_now,
                                         .versions = {}});
    THALWEG_TRY(port->start());
    address_.port = port->port();
    port_ = std::move(port);
  }
  return port_.get();
}

std::string Peering::listen_address() const {
  const std::lock_guard lock(mutex_);
  const bool six = address_.host.find(':') != std::string::npos;
  return six ? fmt::format("[{}]:{}", address_.host, address_.port)
             : fmt::format("{}:{}", address_.host, address_.port);
}

base::Result<void> Peering::renew() {
  const std::lock_guard lock(mutex_);
  return port_ ? port_->reload_certificates() : base::Result<void>{};
}

}  // namespace thalweg::daemon
