package rummikub.conformance;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import javax.net.SocketFactory;

/** Makes connections that it can cut. */
public final class Link extends SocketFactory {
  private final List<Socket> sockets = new ArrayList<>();

  /** Closes all connections; new ones can be made. */
  public synchronized void cut() {
    for (Socket socket : sockets) {
      try {
        socket.close();
      } catch (IOException error) {
        throw new AssertionError(error);
      }
    }
    sockets.clear();
  }

  @Override
  public Socket createSocket() {
    return kept(new Socket());
  }

  @Override
  public Socket createSocket(String host, int port) throws IOException {
    return kept(new Socket(host, port));
  }

  @Override
  public Socket createSocket(InetAddress host, int port) throws IOException {
    return kept(new Socket(host, port));
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress local, int localPort) {
    throw new UnsupportedOperationException("the client binds no local address");
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) {
    throw new UnsupportedOperationException("the client binds no local address");
  }

  private synchronized Socket kept(Socket socket) {
    sockets.add(socket);
    return socket;
  }
}
