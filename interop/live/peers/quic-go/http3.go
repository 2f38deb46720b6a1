// HTTP/3 by quic-go: what src/http3 says of each case.

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// As src/http3 has them.
const (
	goAwayAfter  = 8
	cancelAfter  = 200_000
	largeFields  = 8
	largeValue   = 200
	largestValue = 6_000
)

func isHTTP3(o options) bool { return strings.HasPrefix(o.test, "h3-") }

// serveHTTP3 answers the requests of a connection. Each connection has an http3.Server of its own, because Shutdown sends
// GOAWAY on all connections of one.
func serveHTTP3(o options, connection *quic.Conn) {
	var requests atomic.Int64
	server := &http3.Server{}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == goAwayAfter && o.test == "h3-goaway" {
			// It returns when the connection is over.
			go func() { _ = server.Shutdown(context.Background()) }()
			fact("goaway_sent", 1)
		}
		answerHTTP3(o, w, r)
	})
	err := server.ServeQUICConn(connection)
	fact("requests", requests.Load())
	fact("closed", err)
}

func answerHTTP3(o options, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fact("answer_failed", err)
		return
	}
	status := http.StatusOK
	if r.Method != http.MethodPost {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if body, err = os.ReadFile(filepath.Join(o.www, name)); err != nil || !filepath.IsLocal(name) {
			status, body = http.StatusNotFound, nil
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-") {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		var stopped *http3.Error
		if errors.As(err, &stopped) {
			fact("stopped", fmt.Sprintf("%#x", uint64(stopped.ErrorCode)))
		} else {
			fact("answer_failed", err)
		}
		return
	}
	if o.test == "h3-trailers" {
		fact("request_trailers", len(r.Trailer))
		w.Header().Set(http.TrailerPrefix+"X-Octets", strconv.Itoa(len(body)))
		for name, values := range r.Trailer {
			w.Header()[http.TrailerPrefix+name] = values
		}
	}
}

// session is a connection that requests are sent on.
type session struct {
	options
	connection *quic.Conn
	http       *http3.ClientConn
	close      func()
}

func openHTTP3(ctx context.Context, o options, tlsConfig *tls.Config, text string) (*session, error) {
	connection, transport, err := dial(ctx, o, tlsConfig, text)
	if err != nil {
		return nil, err
	}
	end := func() {
		_ = connection.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		transport.Close()
	}
	return &session{o, connection, (&http3.Transport{DisableCompression: true}).NewClientConn(connection), end}, nil
}

// fetchHTTP3 does what the case is about, and saves the files.
func fetchHTTP3(o options, tlsConfig *tls.Config, urls []string, isEarly bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	s, err := openHTTP3(ctx, o, tlsConfig, urls[0])
	if err != nil {
		return err
	}
	defer s.close()
	switch o.test {
	case "h3-headers":
		return s.headers(ctx, urls)
	case "h3-upload", "h3-trailers":
		return s.echo(ctx, urls[0])
	case "h3-cancel":
		return s.cancel(ctx, urls)
	case "h3-goaway":
		if err := s.goAway(ctx, urls[:goAwayAfter], urls[goAwayAfter]); err != nil {
			return err
		}
		s.close()
		again, err := openHTTP3(ctx, o, tlsConfig, urls[0])
		if err != nil {
			return err
		}
		defer again.close()
		return again.fetch(ctx, urls[goAwayAfter], http.MethodGet, nil)
	}
	method := http.MethodGet
	if isEarly {
		method = http3.MethodGet0RTT
	}
	if err := s.together(ctx, urls, method); err != nil {
		return err
	}
	if s.connection.ConnectionState().Used0RTT {
		fact("early", "accepted")
	}
	return nil
}

// ask sends a request and returns its response, whose body is to be read, if it says success.
func (s *session) ask(ctx context.Context, text, method string, fields http.Header, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, text, body)
	if err != nil {
		return nil, err
	}
	for name, values := range fields {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	if s.test == "h3-trailers" && body != nil {
		request.Trailer = http.Header{"X-Last": {"sent behind the body"}}
	}
	response, err := s.http.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d", text, response.StatusCode)
	}
	return response, nil
}

// fetch saves a file.
func (s *session) fetch(ctx context.Context, text, method string, fields http.Header) error {
	response, err := s.ask(ctx, text, method, fields, nil)
	if err != nil {
		return err
	}
	return s.save(text, response)
}

func (s *session) save(text string, response *http.Response) error {
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.downloads, filepath.Base(text)), content, 0o644)
}

func (s *session) together(ctx context.Context, urls []string, method string) error {
	return all(urls, func(at int, one string) error {
		fields := http.Header{"priority": {fmt.Sprintf("u=%d", 7-at%8)}}
		if err := s.fetch(ctx, one, method, fields); err != nil {
			return err
		}
		fact("finished", filepath.Base(one))
		return nil
	})
}

// all runs it for all at once, and returns one of the errors.
func all(urls []string, run func(int, string) error) error {
	var waiting sync.WaitGroup
	failures := make(chan error, len(urls))
	for at, one := range urls {
		waiting.Go(func() {
			if err := run(at, one); err != nil {
				failures <- fmt.Errorf("%s: %w", one, err)
			}
		})
	}
	waiting.Wait()
	close(failures)
	return <-failures
}

func (s *session) headers(ctx context.Context, urls []string) error {
	for at, one := range urls {
		fields := http.Header{}
		for number := range largeFields {
			fields.Set(fmt.Sprintf("X-Large-%d", number), large(number, largeValue))
		}
		if at+1 == len(urls) {
			fields.Set("X-Largest", large(largeFields, largestValue))
		}
		response, err := s.ask(ctx, one, http.MethodGet, fields, nil)
		if err != nil {
			return err
		}
		for name := range fields {
			if response.Header.Get(name) != fields.Get(name) {
				return fmt.Errorf("%s came back with another value", name)
			}
		}
		if err := s.save(one, response); err != nil {
			return err
		}
	}
	return nil
}

func large(number, size int) string {
	text := make([]byte, size)
	for at := range text {
		text[at] = byte('a' + (at*7+number)%26)
	}
	return string(text)
}

func (s *session) echo(ctx context.Context, text string) error {
	response, err := s.ask(ctx, text, http.MethodGet, nil, nil)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response, err = s.ask(ctx, text, http.MethodPost, nil, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if err := s.save(text, response); err != nil {
		return err
	}
	if s.test == "h3-trailers" {
		if response.Trailer.Get("X-Octets") != strconv.Itoa(len(content)) {
			return fmt.Errorf("the response has the trailers %v", response.Trailer)
		}
		fact("response_trailers", 1)
		if response.Trailer.Get("X-Last") == "sent behind the body" {
			fact("request_trailers", 1)
		}
	}
	return nil
}

func (s *session) cancel(ctx context.Context, urls []string) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := s.ask(within, urls[0], http.MethodGet, nil, nil)
	if err != nil {
		return err
	}
	received, err := io.CopyN(io.Discard, response.Body, cancelAfter)
	if err != nil {
		return err
	}
	cancel()
	fact("cancelled", received)
	for _, one := range urls[1:] {
		if err := s.fetch(ctx, one, http.MethodGet, nil); err != nil {
			return err
		}
	}
	return nil
}

// goAway sends the requests after which the server sends GOAWAY, and the one that is left as soon as one is answered.
// That one has to be refused; the others have to be answered.
func (s *session) goAway(ctx context.Context, urls []string, left string) error {
	var once sync.Once
	var waiting atomic.Int64
	waiting.Store(int64(len(urls)))
	return all(urls, func(_ int, one string) error {
		err := s.fetch(ctx, one, http.MethodGet, nil)
		missing := waiting.Add(-1)
		if err != nil {
			return err
		}
		once.Do(func() {
			_, err = s.ask(ctx, left, http.MethodGet, nil, nil)
			switch {
			case err == nil:
				err = errors.New("a request after GOAWAY was answered")
			case strings.Contains(err.Error(), "graceful shutdown"):
				fact("refused_after_goaway", 1)
				fact("in_progress", missing)
				err = nil
			}
		})
		return err
	})
}
