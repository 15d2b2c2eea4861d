import { Card, Empty } from "~/components/basics";
import { useTitle } from "~/components/title";
import { Link } from "~/router";

export function Missing() {
  useTitle("Not found");
  return (
    <Card>
      <Empty level={1} icon="search" title="There is nothing at this address">
        <p>Perhaps a digit of a task's number or of an address is missing.</p>
        <Link to="/" className="button">
          To the market
        </Link>
      </Empty>
    </Card>
  );
}
