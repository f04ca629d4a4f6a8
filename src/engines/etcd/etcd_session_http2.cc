#include "engines/etcd/etcd_session_http2.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

namespace holdfast::engines {
namespace {

constexpr std::size_t kFrameHead = 5;  // of a message in a gRPC stream

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    // The library copies it; its C interface knows no const.
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // NOLINT
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

std::string grpc_framed(std::string_view message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string text{'\0', static_cast<char>(size >> 24U), static_cast<char>(size >> 16U),
                   static_cast<char>(size >> 8U), static_cast<char>(size)};
  return text.append(message);
}

std::optional<std::string> take_grpc_message(std::string& bytes) {
  if (bytes.size() < kFrameHead) {
    return std::nullopt;
  }
  std::size_t size = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i) {
    size = size << 8U | static_cast<unsigned char>(bytes[i]);
  }
  if (bytes.size() < kFrameHead + size) {
    return std::nullopt;
  }
  std::string message = bytes.substr(kFrameHead, size);
  bytes.erase(0, kFrameHead + size);
  return message;
}

// What the library calls.
struct EtcdHttp2::Callbacks {
  static Stream* stream_of(void* user, std::int32_t id) {
    auto& streams = static_cast<EtcdHttp2*>(user)->streams_;
    const auto found = streams.find(id);
    return found == streams.end() ? nullptr : found->second.get();
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    Stream* stream = stream_of(user, frame->hd.stream_id);
    const std::string_view key{reinterpret_cast<const char*>(name), name_size};
    const std::string_view text{reinterpret_cast<const char*>(value), value_size};
    if (stream != nullptr && key == "grpc-status") {
      std::from_chars(text.data(), text.data() + text.size(), stream->status);
    } else if (stream != nullptr && key == "grpc-message") {
      stream->text = text;
    }
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    if (Stream* stream = stream_of(user, id)) {
      stream->in.append(reinterpret_cast<const char*>(data), size);
      while (stream->open_ended) {
        const auto message = take_grpc_message(stream->in);
        if (!message) {
          break;
        }
        static_cast<EtcdHttp2*>(user)->owner_.on_message(*message);
      }
    }
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t why, void* user) {
    auto* self = static_cast<EtcdHttp2*>(user);
    if (const auto node = self->streams_.extract(id)) {
      self->owner_.on_closed(id, *node.mapped(), why == NGHTTP2_REFUSED_STREAM);
    }
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto* self = static_cast<EtcdHttp2*>(user);
    self->greeted_ = self->greeted_ || frame->hd.type == NGHTTP2_SETTINGS;
    self->leaving_ = self->leaving_ || frame->hd.type == NGHTTP2_GOAWAY;
    return 0;
  }

  static ssize_t on_read(nghttp2_session*, std::int32_t, std::uint8_t* buffer, std::size_t room,
                         std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto* stream = static_cast<Stream*>(source->ptr);
    const std::size_t count = std::min(room, stream->out.size());
    std::memcpy(buffer, stream->out.data(), count);
    stream->out.erase(0, count);
    if (stream->out.empty() && !stream->open_ended) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(count);
  }
};

EtcdHttp2::EtcdHttp2(Owner& owner) : owner_{owner} {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Callbacks::on_close);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Callbacks::on_frame);
  nghttp2_session_client_new(&raw_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  constexpr std::array<nghttp2_settings_entry, 2> kSettings{
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1U << 20U}}};
  nghttp2_submit_settings(raw_, NGHTTP2_FLAG_NONE, kSettings.data(), kSettings.size());
}

EtcdHttp2::~EtcdHttp2() {
  nghttp2_session_del(raw_);
}

std::int32_t EtcdHttp2::open(const Call& call, std::unique_ptr<Stream> stream) {
  std::vector<nghttp2_nv> headers{
      header(":method", "POST"),    header(":scheme", call.secret ? "https" : "http"),
      header(":path", call.method), header(":authority", call.server),
      header("te", "trailers"),     header("content-type", "application/grpc")};
  if (call.needs_leader) {
    headers.push_back(header("hasleader", "true"));
  }
  if (!call.token.empty()) {
    headers.push_back(header("token", call.token));
  }
  nghttp2_data_provider provider{};
  provider.source.ptr = stream.get();
  provider.read_callback = &Callbacks::on_read;
  const std::int32_t id =
      nghttp2_submit_request(raw_, nullptr, headers.data(), headers.size(), &provider, nullptr);
  if (id < 0) {
    leaving_ = true;
  } else {
    streams_.emplace(id, std::move(stream));
  }
  return id;
}

void EtcdHttp2::say(std::int32_t id, std::string_view message) {
  const auto found = streams_.find(id);
  if (found != streams_.end()) {
    found->second->out += grpc_framed(message);
    nghttp2_session_resume_data(raw_, id);
  }
}

void EtcdHttp2::cancel(std::int32_t id) {
  nghttp2_submit_rst_stream(raw_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

bool EtcdHttp2::take(std::string_view bytes) {
  return nghttp2_session_mem_recv(raw_, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                  bytes.size()) >= 0 &&
         nghttp2_session_want_read(raw_) != 0;
}

std::optional<std::string> EtcdHttp2::give(std::string& bytes) {
  const std::uint8_t* part = nullptr;
  const ssize_t count = nghttp2_session_mem_send(raw_, &part);
  if (count < 0) {
    return nghttp2_strerror(static_cast<int>(count));
  }
  bytes.append(reinterpret_cast<const char*>(part), static_cast<std::size_t>(count));
  return std::nullopt;
}

bool EtcdHttp2::wants_to_write() const {
  return nghttp2_session_want_write(raw_) != 0;
}

const EtcdRequest* EtcdHttp2::oldest() const {
  const auto found = std::ranges::find_if(
      streams_, [](const auto& each) { return each.second->request != nullptr; });
  return found == streams_.end() ? nullptr : found->second->request;
}

}  // namespace holdfast::engines
