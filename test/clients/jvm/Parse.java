import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import protocol.AirbyteMessage;

/** Parses each line of stdin as a message, as the platform does, and names those that it cannot. Prints how many it could. */
public class Parse {
  public static void main(String[] args) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    int parsed = 0;
    int refused = 0;
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        AirbyteMessage message = mapper.readValue(line, AirbyteMessage.class);
        if (message.getType() == null || !message.getAdditionalProperties().isEmpty())
          throw new IllegalArgumentException("no type, or fields that the protocol does not know");
        parsed += 1;
      } catch (Exception error) {
        refused += 1;
        System.err.println(error.getMessage() + ": " + line.substring(0, Math.min(300, line.length())));
      }
    }
    System.out.println(parsed);
    System.exit(refused == 0 ? 0 : 1);
  }
}
