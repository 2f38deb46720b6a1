// quic-go as a peer, with the command line that all peers have: see src/args.rs. HTTP/3 is in http3.go.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	unsupported = 127
	maxRequest  = 4096
	streams     = 100
	// Bytes that have come when a client does what its case is about.
	some = 200_000
)

type options struct {
	test, listen, cert, key, www, ca, downloads string
	via                                         []netip.Addr
	urls                                        []string
}

// Cases by role. quic-go begins the next key phase by itself after its first 100 packets, so that keyupdate is a
// transfer.
var cases = map[string]string{
	"handshake": "both", "transfer": "both", "multiplexing": "both", "multiconnect": "both", "retry": "both",
	"resumption": "both", "zerortt": "both", "versionnegotiation": "both", "keyupdate": "both", "chacha20": "server",
	"statelessreset": "both", "connectionmigration": "both", "ecn": "both",
	"h3-100": "both", "h3-headers": "both", "h3-upload": "both", "h3-trailers": "both", "h3-cancel": "both",
	"h3-goaway": "both", "h3-0rtt": "both",
}

func fact(name string, value any) { fmt.Printf("fact %s %v\n", name, value) }

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "expected client or server")
		os.Exit(1)
	}
	role := os.Args[1]
	var o options
	flags := flag.NewFlagSet(role, flag.ExitOnError)
	flags.StringVar(&o.test, "case", "transfer", "")
	flags.StringVar(&o.listen, "listen", "[::]:443", "")
	flags.StringVar(&o.cert, "cert", "/certs/cert.pem", "")
	flags.StringVar(&o.key, "key", "/certs/priv.key", "")
	flags.StringVar(&o.www, "www", "/www", "")
	flags.StringVar(&o.ca, "ca", "/certs/ca.pem", "")
	flags.StringVar(&o.downloads, "downloads", "/downloads", "")
	flags.Func("via", "", func(text string) error {
		address, err := netip.ParseAddr(text)
		o.via = append(o.via, address)
		return err
	})
	_ = flags.Parse(os.Args[2:])
	o.urls = flags.Args()
	if known := cases[o.test]; known != "both" && known != role {
		fmt.Fprintf(os.Stderr, "test case %q is not supported\n", o.test)
		os.Exit(unsupported)
	}
	var err error
	switch role {
	case "server":
		err = serve(o)
	case "client":
		err = fetchAll(o)
	default:
		err = fmt.Errorf("role %q, expected client or server", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// isEarly: the second connection sends requests in 0-RTT.
func isEarly(o options) bool { return o.test == "zerortt" || o.test == "h3-0rtt" }

func alpn(o options) []string {
	if isHTTP3(o) {
		return []string{"h3"}
	}
	return []string{"hq-interop"}
}

func config(o options) *quic.Config {
	c := &quic.Config{
		MaxIncomingStreams: streams,
		Allow0RTT:          isEarly(o),
		Versions:           []quic.Version{quic.Version1},
	}
	return c
}

func serve(o options) error {
	certificate, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(o.key)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", o.listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	// The same each time that a server with that key starts.
	resetKey := quic.StatelessResetKey(sha256.Sum256(key))
	transport := quic.Transport{
		Conn:                socket,
		StatelessResetKey:   &resetKey,
		VerifySourceAddress: func(net.Addr) bool { return o.test == "retry" },
	}
	listener, err := transport.ListenEarly(
		&tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: alpn(o)}, config(o))
	if err != nil {
		return err
	}
	fact("listening", listener.Addr())
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		if isHTTP3(o) {
			go serveHTTP3(o, connection)
			continue
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					fact("closed", err)
					return
				}
				go answer(o.www, stream)
			}
		}()
	}
}

func answer(www string, stream *quic.Stream) {
	request, err := io.ReadAll(io.LimitReader(stream, maxRequest))
	name, found := strings.CutPrefix(strings.TrimSpace(string(request)), "GET /")
	if err != nil || !found || !filepath.IsLocal(name) {
		stream.CancelWrite(1)
		return
	}
	content, err := os.ReadFile(filepath.Join(www, name))
	if err != nil {
		stream.CancelWrite(1)
		return
	}
	if _, err := stream.Write(content); err == nil {
		_ = stream.Close()
	}
}

// tickets tells when one came.
type tickets struct {
	tls.ClientSessionCache
	came chan struct{}
}

func (t *tickets) Put(key string, state *tls.ClientSessionState) {
	t.ClientSessionCache.Put(key, state)
	select {
	case t.came <- struct{}{}:
	default:
	}
}

func fetchAll(o options) error {
	roots, err := os.ReadFile(o.ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	cache := &tickets{tls.NewLRUClientSessionCache(8), make(chan struct{}, 1)}
	tlsConfig := &tls.Config{RootCAs: pool, NextProtos: alpn(o)}
	groups := [][]string{o.urls}
	switch o.test {
	case "resumption", "zerortt", "h3-0rtt":
		tlsConfig.ClientSessionCache = cache
		groups = [][]string{o.urls[:1], o.urls[1:]}
	case "multiconnect":
		groups = nil
		for _, one := range o.urls {
			groups = append(groups, []string{one})
		}
	}
	for at, urls := range groups {
		fetch := fetchGroup
		if isHTTP3(o) {
			fetch = fetchHTTP3
		}
		if err := fetch(o, tlsConfig, urls, isEarly(o) && at > 0); err != nil {
			return err
		}
		if tlsConfig.ClientSessionCache != nil && at == 0 {
			select {
			case <-cache.came:
			case <-time.After(5 * time.Second):
				return errors.New("no ticket came in 5 s")
			}
		}
	}
	return nil
}

// dial opens a connection to the server of a URL; requests in 0-RTT may be sent at once.
func dial(ctx context.Context, o options, tlsConfig *tls.Config, text string) (*quic.Conn, *quic.Transport, error) {
	first, err := url.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	remote, err := net.ResolveUDPAddr("udp4", first.Host)
	if err != nil {
		return nil, nil, err
	}
	tlsConfig.ServerName = first.Hostname()
	transport, err := leaveBy(netip.IPv4Unspecified())
	if err != nil {
		return nil, nil, err
	}
	c := config(o)
	if o.test == "versionnegotiation" {
		// It begins in version 2, and the server speaks version 1 alone.
		c.Versions = []quic.Version{quic.Version2, quic.Version1}
	}
	connection, err := transport.DialEarly(ctx, remote, tlsConfig, c)
	if err != nil {
		transport.Close()
		return nil, nil, err
	}
	return connection, transport, nil
}

func fetchGroup(o options, tlsConfig *tls.Config, urls []string, _ bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	connection, transport, err := dial(ctx, o, tlsConfig, urls[0])
	if err != nil {
		return err
	}
	defer transport.Close()
	if o.test != "zerortt" {
		<-connection.HandshakeComplete()
	}
	var waiting sync.WaitGroup
	failures := make(chan error, len(urls))
	var received counter
	for _, one := range urls {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			if err := fetch(ctx, connection, o.downloads, one, &received); err != nil {
				failures <- err
			}
		}()
	}
	if o.test == "connectionmigration" {
		if err := migrate(ctx, connection, o.via, &received); err != nil {
			return err
		}
	}
	waiting.Wait()
	close(failures)
	err = <-failures
	var reset *quic.StatelessResetError
	if o.test == "statelessreset" {
		if !errors.As(err, &reset) {
			return fmt.Errorf("expected a stateless reset: %v", err)
		}
		fact("reset", 1)
		return nil
	}
	if err != nil {
		return err
	}
	if connection.ConnectionState().Used0RTT {
		fact("early", "accepted")
	}
	return connection.CloseWithError(0, "")
}

func leaveBy(address netip.Addr) (*quic.Transport, error) {
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return nil, err
	}
	return &quic.Transport{Conn: socket}, nil
}

func migrate(ctx context.Context, connection *quic.Conn, via []netip.Addr, received *counter) error {
	address := netip.IPv4Unspecified()
	if len(via) > 0 {
		address = via[0]
	}
	for received.total() < some {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(2 * time.Millisecond)
	}
	transport, err := leaveBy(address)
	if err != nil {
		return err
	}
	path, err := connection.AddPath(transport)
	if err != nil {
		return err
	}
	if err := path.Probe(ctx); err != nil {
		return err
	}
	return path.Switch()
}

// counter counts bytes that came.
type counter struct {
	mutex sync.Mutex
	bytes int
}

func (c *counter) Write(content []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.bytes += len(content)
	return len(content), nil
}

func (c *counter) total() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bytes
}

func fetch(ctx context.Context, connection *quic.Conn, downloads, text string, received io.Writer) error {
	one, err := url.Parse(text)
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", one.Path); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	var content bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(&content, received), stream); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(downloads, filepath.Base(one.Path)), content.Bytes(), 0o644)
}
