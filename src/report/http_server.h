// Pages for browsers on this machine: HTTP/1.1, one answer a connection, one thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hdetach::report {

struct HttpAnswer {
  int status = 404;
  const char* type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // may be null
};

// How long clients may take. A slow one keeps no other waiting; one that exceeds this is dropped.
struct HttpPatience {
  double request_seconds = 10;   // for its request
  double progress_seconds = 30;  // between two parts of the answer that it takes
};

class HttpServer {
 public:
  // Listens on 127.0.0.1 alone; port 0 means any that is free. Throws std::runtime_error.
  explicit HttpServer(int port, HttpPatience patience = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

  // Answers until *stop is not 0. `answer` is asked with the path of every GET and HEAD that names
  // this machine as its host; all else is refused before.
  void serve(const volatile std::sig_atomic_t* stop,
             const std::function<HttpAnswer(const std::string& path)>& answer);

 private:
  const HttpPatience patience_;
  int listener_;
  int port_ = 0;
};

}  // namespace hdetach::report
