// A browser that asks once, for tests.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::testing_support {

// A connection to a port of 127.0.0.1; none if nobody listens.
inline Descriptor connected(int port) {
  Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port)), .sin_addr = {}, .sin_zero = {}};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return client;
}

// What the server says to a request, which asks it to close the connection; empty if nobody is there.
inline std::string ask(int port, const std::string& line, const std::string& host = "127.0.0.1") {
  const Descriptor client = connected(port);
  if (!client) return "";
  const std::string request = line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  send(client.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string said(1 << 20, '\0');
  size_t size = 0;
  for (ssize_t count = 0; (count = recv(client.get(), said.data() + size, said.size() - size, 0)) > 0;) {
    size += static_cast<size_t>(count);
  }
  said.resize(size);
  return said;
}

}  // namespace lockstep::testing_support
